package mqtt

import (
	"time"
)

// sendQoS0 writes the QoS 0 mailboxes as they become ready, as many as are ready in one write.
func (s *session) sendQoS0() {
	const batchLimit = 64 << 10
	var (
		queue = s.link.qos0
		batch []byte
		taken []*mailbox
		large []*unconfirmedPacket
	)
	timer := newIdleTimer()
	defer timer.Stop()
	for {
		now := time.Now()
		batch, taken, large = batch[:0], taken[:0], large[:0]
		limit := s.sizeLimit(now)
		wait := time.Duration(-1)
		at := s.link.device.dueAt(now, s.ending)
		for len(batch) < batchLimit {
			var box *mailbox
			if box, wait = queue.Take(at); box == nil {
				break
			}
			before := len(batch)
			batch = box.AppendPacket(batch)
			size := len(batch) - before
			if size >= limit {
				batch = batch[:before]
				s.link.tooLarge(box.Topic, size, limit, !box.Discard(now))
				continue
			}
			if packet := s.unconfirmed.Begin(size); packet != nil {
				large = append(large, packet)
			}
			taken = append(taken, box)
		}
		if len(taken) > 0 {
			_, err := s.conn.Write(batch)
			if err == nil {
				for _, packet := range large {
					s.unconfirmed.Written(packet)
				}
			}
			for _, box := range taken {
				box.Settle(err == nil, now)
			}
			if err != nil {
				return
			}
			if cap(batch) > 4*batchLimit {
				batch = nil // a snapshot passed through
			}
			continue
		}
		ending := s.ending
		if isClosed(ending) {
			if queue.Len() == 0 {
				return
			}
			ending = nil
		}
		if wait >= 0 {
			timer.Reset(wait)
		}
		select {
		case <-queue.Wake:
		case <-timer.C:
		case <-ending:
		case <-s.abort:
			return
		case <-s.done:
			return
		}
		timer.Stop()
	}
}

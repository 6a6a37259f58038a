package mqtt

import "time"

// sendLatest writes the QoS 0 slots as they become ready, as many as are ready in one write.
func (s *session) sendLatest() {
	const batchLimit = 64 << 10
	var (
		lane  = s.client.latest
		batch []byte
		taken []*slot
	)
	timer := newIdleTimer()
	defer timer.Stop()
	for {
		now := time.Now()
		batch, taken = batch[:0], taken[:0]
		wait := time.Duration(-1)
		for len(batch) < batchLimit {
			var slot *slot
			if slot, wait = lane.take(now); slot == nil {
				break
			}
			batch = slot.appendPacket(batch)
			taken = append(taken, slot)
		}
		if len(taken) > 0 {
			_, err := s.conn.Write(batch)
			for _, slot := range taken {
				slot.settle(err == nil, now)
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
			if lane.empty() {
				return
			}
			ending = nil
		}
		if wait >= 0 {
			timer.Reset(wait)
		}
		select {
		case <-lane.wake:
		case <-timer.C:
		case <-ending:
		case <-s.cease:
			return
		case <-s.done:
			return
		}
		timer.Stop()
	}
}

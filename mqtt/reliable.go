package mqtt

import (
	"fmt"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"
)

// flight is a QoS 1 message that the broker has not acknowledged yet.
type flight struct {
	token paho.Token
	sent  time.Time
	slot  *slot  // nil for an event
	event uint64 // number of the event, 0 for none
}

// reliable publishes the QoS 1 slots and, behind them, the events, with at most Window messages unacknowledged. Its goroutine only.
type reliable struct {
	*session
	flights []flight  // oldest first, which is the order in which brokers acknowledge
	cursor  uint64    // last event sent
	paced   time.Time // when the next replayed event may leave
	// buffers hold the events in flight: each must stay as it is until it is acknowledged, and Window+1 in turn outlast that.
	buffers [][]byte
	turn    int
}

// sendReliable runs until the session ends, or when it is ending until everything is sent and acknowledged.
func (s *session) sendReliable() {
	r := reliable{session: s, buffers: make([][]byte, s.client.Window+1)}
	defer r.abandon()
	if !r.send(publication{s.client.topics.Available(), true, []byte("online")}, flight{sent: time.Now()}) {
		return
	}
	subscribed := s.subscribe()
	timer := newIdleTimer()
	defer timer.Stop()
	for {
		wait, ok := r.fill()
		if !ok {
			return
		}
		ending := s.ending
		if isClosed(ending) {
			if len(r.flights) == 0 && wait < 0 {
				return
			}
			ending = nil
		}
		var oldest <-chan struct{}
		if len(r.flights) > 0 {
			oldest = r.flights[0].token.Done()
			if left := time.Until(r.flights[0].sent.Add(s.client.AckTimeout)); wait < 0 || left < wait {
				wait = left
			}
		}
		if wait >= 0 {
			timer.Reset(wait)
		}
		select {
		case <-oldest:
			if err := r.land(); err != nil {
				s.fail(err)
				return
			}
		case <-s.client.reliable.wake:
		case <-ending:
		case <-subscribed.done:
			subscribed.report(s.client)
			subscribed.done = nil
		case <-timer.C:
			if len(r.flights) > 0 && time.Since(r.flights[0].sent) >= s.client.AckTimeout {
				s.fail(fmt.Errorf("broker acknowledged nothing for %v", s.client.AckTimeout))
				return
			}
		case <-s.cease:
			return
		case <-s.done:
			return
		}
		timer.Stop()
	}
}

// fill sends what is ready while the window has room. It returns how long until more may be ready, a negative time when that is unknown,
// and false when the session is over.
func (r *reliable) fill() (time.Duration, bool) {
	wait := time.Duration(-1)
	for len(r.flights) < r.client.Window && !isClosed(r.cease) {
		now := time.Now()
		var slot *slot
		if slot, wait = r.client.reliable.take(now); slot != nil {
			if !r.send(publication{slot.topic, slot.retain, slot.current.bytes}, flight{sent: now, slot: slot}) {
				return 0, false
			}
			continue
		}
		if left := r.paced.Sub(now); left > 0 && !isClosed(r.ending) {
			if wait < 0 || left < wait {
				wait = left
			}
			break
		}
		event, ok := r.next(now)
		if !ok {
			break
		}
		if !r.send(publication{event.topic, false, event.payload}, flight{sent: now, event: event.number}) {
			return 0, false
		}
	}
	return wait, true
}

// next takes the next event from the spool.
func (r *reliable) next(now time.Time) (event, bool) {
	// pacingSlack is how much of the replay's time may be caught up at once, because timers fire late.
	const pacingSlack = 20 * time.Millisecond
	buffer := &r.buffers[r.turn%len(r.buffers)]
	event, ok := r.client.spool.next(r.cursor, (*buffer)[:0])
	if ok {
		r.turn++
		r.cursor = event.number
		if event.number <= r.mark {
			event.markReplayed()
			if floor := now.Add(-pacingSlack); r.paced.Before(floor) {
				r.paced = floor
			}
			r.paced = r.paced.Add(r.client.replayGap)
		}
	}
	*buffer = event.buffer
	return event, ok
}

// send publishes a message. It returns false when the session is over.
func (r *reliable) send(p publication, f flight) bool {
	if f.token = r.publish(p, nil); f.token == nil {
		if f.slot != nil {
			f.slot.settle(false, f.sent)
		}
		return false
	}
	r.flights = append(r.flights, f)
	return true
}

// land settles the oldest flight, whose token is done.
func (r *reliable) land() error {
	f := r.flights[0]
	if err := f.token.Error(); err != nil {
		return err
	}
	r.flights = append(r.flights[:0], r.flights[1:]...)
	switch {
	case f.slot != nil:
		f.slot.settle(true, time.Now())
	case f.event != 0:
		r.client.spool.acknowledge(f.event)
	}
	return nil
}

// abandon gives the unacknowledged slots back; unacknowledged events are still in the spool.
func (r *reliable) abandon() {
	for _, f := range r.flights {
		if f.slot != nil {
			f.slot.settle(false, time.Now())
		}
	}
}

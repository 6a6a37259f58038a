package mqtt

import (
	"fmt"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"

	"github.com/edge-infer/edge-infer/mqtt/payload"
	"github.com/edge-infer/edge-infer/mqtt/spool"
	"github.com/edge-infer/edge-infer/mqtt/topic"
)

// inflightMessage is a QoS 1 message that the broker has not acknowledged yet.
type inflightMessage struct {
	token  paho.Token
	sent   time.Time
	box    *mailbox // nil for an event
	event  uint64   // number of the event, 0 for none
	size   int      // of its packet
	packet *unconfirmedPacket
	mark   uint64 // what was written before
}

// qos1Sender publishes the events and the QoS 1 mailboxes, with at most Window messages unacknowledged. Its goroutine only.
type qos1Sender struct {
	*session
	inflight []inflightMessage // oldest first: brokers acknowledge in this order
	cursor   uint64            // last event sent
	paced    time.Time         // when the next replayed event may leave
	// buffers hold the events in flight, used in turn. Window+1 of them ensure that none changes before its acknowledgement.
	buffers    [][]byte
	nextBuffer int // of the buffers
	rounds     int // of fill
}

// sendQoS1 runs until the session ends or, once ending is closed, until everything is sent and acknowledged.
func (s *session) sendQoS1() {
	r := qos1Sender{session: s, buffers: make([][]byte, s.link.Window+1)}
	defer r.abandon()
	if !r.send(publication{s.link.device.availability(), true, []byte(topic.Online)}, inflightMessage{sent: time.Now()}) {
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
			if len(r.inflight) == 0 && wait < 0 {
				return
			}
			ending = nil
		}
		var oldest <-chan struct{}
		if len(r.inflight) > 0 {
			oldest = r.inflight[0].token.Done()
			if left := time.Until(r.inflight[0].sent.Add(s.link.AckTimeout)); wait < 0 || left < wait {
				wait = left
			}
		}
		if wait >= 0 {
			timer.Reset(wait)
		}
		select {
		case <-oldest:
			if err := r.settleOldest(); err != nil {
				s.fail(err)
				return
			}
		case <-s.link.qos1.Wake:
		case <-ending:
		case <-subscribed.done:
			subscribed.report(s.link)
			subscribed.done = nil
		case <-timer.C:
			if len(r.inflight) > 0 && time.Since(r.inflight[0].sent) >= s.link.AckTimeout {
				s.fail(fmt.Errorf("broker acknowledged nothing for %v", s.link.AckTimeout))
				return
			}
		case <-s.abort:
			return
		case <-s.done:
			return
		}
		timer.Stop()
	}
}

// sendResult is the result of an attempt to send.
type sendResult int

const (
	nothingReady sendResult = iota // is ready
	sent
	sessionEnded // the session
)

// fill sends ready messages until the window is full. It returns the time until more may be ready (negative if unknown), and false if the
// session has ended.
func (r *qos1Sender) fill() (time.Duration, bool) {
	// Events have priority over state, but state goes first in one of stateTurn rounds.
	const stateTurn = 4
	for len(r.inflight) < r.link.Window && !isClosed(r.abort) {
		now := time.Now()
		first, second := r.sendEvent, r.sendState
		if r.rounds++; r.rounds%stateTurn == 0 {
			first, second = second, first
		}
		result, wait := first(now)
		if result == nothingReady {
			var other time.Duration
			if result, other = second(now); wait < 0 || other >= 0 && other < wait {
				wait = other
			}
		}
		switch result {
		case sessionEnded:
			return 0, false
		case nothingReady:
			return wait, true
		}
	}
	return -1, true
}

// sendState sends the next ready state mailbox. If none is ready, it returns the time until one is (negative if unknown).
func (r *qos1Sender) sendState(now time.Time) (sendResult, time.Duration) {
	for {
		box, wait := r.link.qos1.Take(r.link.device.dueAt(now, r.ending))
		if box == nil {
			return nothingReady, wait
		}
		size := packetSize(box.Topic, len(box.Message()), 1)
		if limit := r.sizeLimit(now); size >= limit {
			r.link.tooLarge(box.Topic, size, limit, !box.Discard(now))
			continue
		}
		if !r.send(publication{box.Topic, box.Retain, box.Message()}, inflightMessage{sent: now, box: box, size: size}) {
			return sessionEnded, 0
		}
		return sent, 0
	}
}

// sendEvent sends the next event, as sendState does.
func (r *qos1Sender) sendEvent(now time.Time) (sendResult, time.Duration) {
	for {
		if left := r.paced.Sub(now); left > 0 && !isClosed(r.ending) {
			return nothingReady, left
		}
		event, ok := r.next(now)
		if !ok {
			return nothingReady, -1
		}
		size := packetSize(event.Topic, len(event.Payload), 1)
		if limit := r.sizeLimit(now); size >= limit {
			r.link.events.Drop(event.Number)
			r.link.tooLarge(event.Topic, size, limit, false)
			continue
		}
		if !r.send(publication{event.Topic, false, event.Payload}, inflightMessage{sent: now, event: event.Number, size: size}) {
			return sessionEnded, 0
		}
		r.link.noteSent(event.Number)
		return sent, 0
	}
}

// next takes the next event from the spool.
func (r *qos1Sender) next(now time.Time) (spool.Event, bool) {
	// pacingSlack bounds how much replay time is caught up at once, because timers fire late.
	const pacingSlack = 20 * time.Millisecond
	buffer := &r.buffers[r.nextBuffer%len(r.buffers)]
	event, ok := r.link.events.Next(r.cursor, (*buffer)[:0])
	if ok {
		r.nextBuffer++
		r.cursor = event.Number
		if r.link.BeforeEvent != nil {
			r.link.BeforeEvent()
		}
		if event.Number <= r.mark {
			r.markReplayed(&event)
			if floor := now.Add(-pacingSlack); r.paced.Before(floor) {
				r.paced = floor
			}
			r.paced = r.paced.Add(r.link.replayGap)
		}
	}
	*buffer = event.Buffer
	return event, ok
}

// markReplayed adds the fields replayed and age_s to a JSON payload: its own time may come from a clock that was not set.
func (r *qos1Sender) markReplayed(e *spool.Event) {
	if n := len(e.Payload); n > 2 && e.Payload[n-1] == '}' {
		at := len(e.Buffer) - n
		e.Buffer = append(e.Buffer[:len(e.Buffer)-1], `,"age_s":`...)
		e.Buffer = payload.AppendDecimal(e.Buffer, r.link.events.Age(e).Seconds())
		e.Buffer = append(e.Buffer, `,"replayed":true}`...)
		e.Payload = e.Buffer[at:]
	}
}

// send publishes a message. It returns false when the session is over.
func (r *qos1Sender) send(p publication, f inflightMessage) bool {
	f.packet, f.mark = r.unconfirmed.Begin(f.size), r.unconfirmed.Mark()
	if f.token = r.publish(p, nil); f.token == nil {
		if f.box != nil {
			f.box.Settle(false, f.sent)
		}
		return false
	}
	r.unconfirmed.Written(f.packet)
	r.inflight = append(r.inflight, f)
	return true
}

// settleOldest settles the oldest message in flight, whose token is done.
func (r *qos1Sender) settleOldest() error {
	f := r.inflight[0]
	if err := f.token.Error(); err != nil {
		return err
	}
	r.inflight = append(r.inflight[:0], r.inflight[1:]...)
	if r.link.Acknowledged != nil {
		r.link.Acknowledged(time.Since(f.sent))
	}
	r.link.sizes.Confirm(r.broker, max(f.size, r.unconfirmed.Confirm(f.packet, f.mark)))
	switch {
	case f.box != nil:
		f.box.Settle(true, time.Now())
	case f.event != 0:
		r.link.events.Acknowledge(f.event)
	}
	return nil
}

// abandon returns the unacknowledged mailboxes; unacknowledged events are still in the spool.
func (r *qos1Sender) abandon() {
	for _, f := range r.inflight {
		if f.box != nil {
			f.box.Settle(false, time.Now())
		}
	}
}

package mqtt

import (
	"time"

	"github.com/edge-infer/edge-infer/mqtt/transport"
)

// tooLarge counts and logs a message that exceeds the broker's packet limit.
func (l *Link) tooLarge(topic string, size, limit int, repetition bool) {
	if l.sizes.CountTooLarge(topic, size, limit, repetition) {
		l.Logger.Warn("mqtt message is larger than the broker takes, it is set aside", "topic", topic, "bytes", size, "limit", limit-1)
	}
}

// explainLoss records a large unconfirmed packet as the possible reason for a lost connection and adds it to the error.
func (l *Link) explainLoss(s *session, broker string, err error) error {
	if !transport.Closed(err) {
		return err
	}
	size := s.unconfirmed.Largest()
	if limit := l.sizes.Lost(broker, size, time.Now()); limit > 0 {
		l.Logger.Warn("mqtt broker rejects packets of this size; larger messages are dropped from now on", "broker", broker, "bytes", limit)
	}
	if size == 0 {
		return err
	}
	return &packetError{Size: size, Err: err}
}

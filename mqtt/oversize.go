package mqtt

import (
	"time"

	"github.com/edge-infer/edge-infer/mqtt/transport"
)

// tooLarge counts and logs a message that exceeds the broker's packet limit.
func (c *Client) tooLarge(topic string, size, limit int, repetition bool) {
	if c.sizes.CountTooLarge(topic, size, limit, repetition) {
		c.Logger.Warn("mqtt message is larger than the broker takes, it is set aside", "topic", topic, "bytes", size, "limit", limit-1)
	}
}

// explainLoss records a large unconfirmed packet as the possible reason for a lost connection and adds it to the error.
func (c *Client) explainLoss(s *session, broker string, err error) error {
	if !transport.Closed(err) {
		return err
	}
	size := s.unconfirmed.Largest()
	if limit := c.sizes.Lost(broker, size, time.Now()); limit > 0 {
		c.Logger.Warn("mqtt broker rejects packets of this size; larger messages are dropped from now on", "broker", broker, "bytes", limit)
	}
	if size == 0 {
		return err
	}
	return &packetError{Size: size, Err: err}
}

package mqtt

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"
)

// Forget removes a decommissioned device from the first broker that answers: every retained message below its topics and its Home
// Assistant devices. The device's own daemon must be stopped, or it publishes them again. It needs an open client that does not run and
// that needs no spool, and returns how many messages it cleared.
func (c *Client) Forget(ctx context.Context) (int, error) {
	var s *session
	var errs []error
	for _, to := range c.addresses {
		var err error
		if s, err = c.connect(ctx, to, identity{id: c.ClientID + "-forget", inbound: 2 * topicLimit, largest: math.MaxInt}); err == nil {
			break
		}
		errs = append(errs, fmt.Errorf("%s: %w", to, err))
	}
	if s == nil {
		return 0, fmt.Errorf("forget device: %w", errors.Join(errs...))
	}
	defer func() {
		s.paho.Disconnect(100)
		s.fail(errStopped)
	}()
	go s.callPaho()
	filters := map[string]byte{c.topics.Base() + "#": 1}
	if c.DiscoveryPrefix != "" {
		filters[c.discovery().Filter()] = 1
	}
	subscribed := s.paho.SubscribeMultiple(filters, nil)
	// The broker sends what it retains right after its acknowledgement; silence means that this was all.
	const silence = 500 * time.Millisecond
	timer := time.NewTimer(c.AckTimeout)
	defer timer.Stop()
	cleared := 0
	acknowledged := subscribed.Done()
	for {
		select {
		case <-acknowledged:
			if err := subscribed.Error(); err != nil {
				return cleared, fmt.Errorf("forget device: %w", err)
			}
			acknowledged = nil
			timer.Reset(silence)
		case m := <-s.inbound:
			if !m.Retained() || len(m.Payload()) == 0 {
				continue
			}
			if err := s.clear(ctx, m); err != nil {
				return cleared, fmt.Errorf("forget device: %w", err)
			}
			cleared++
			timer.Reset(silence)
		case <-timer.C:
			if acknowledged != nil {
				return cleared, fmt.Errorf("forget device: broker did not answer for %v", c.AckTimeout)
			}
			return cleared, nil
		case <-s.done:
			return cleared, fmt.Errorf("forget device: %w", s.err)
		case <-ctx.Done():
			return cleared, ctx.Err()
		}
	}
}

// clear replaces a retained message by nothing and waits until the broker has done so.
func (s *session) clear(ctx context.Context, m paho.Message) error {
	token := s.publish(publication{m.Topic(), true, []byte{}}, nil)
	if token == nil {
		return s.err
	}
	select {
	case <-token.Done():
		return token.Error()
	case <-s.done:
		return s.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

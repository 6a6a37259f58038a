package mqtt

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"

	"github.com/edge-infer/edge-infer/mqtt/address"
)

// Forget removes a decommissioned device from the first broker that answers: every retained message below its topics and its Home Assistant
// devices. It returns the number of cleared messages. The client must be open and not running, and the device's own daemon must be stopped,
// or it publishes them again.
func (c *Client) Forget(ctx context.Context) (int, error) {
	filters := []string{c.topics.Base() + "#"}
	if c.DiscoveryPrefix != "" {
		filters = append(filters, c.discovery.Filter())
	}
	var errs []error
	for _, to := range c.addresses {
		s, err := c.connectExtra(ctx, to, "-forget")
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", to, err))
			continue
		}
		defer s.end()
		cleared, err := s.clearRetained(ctx, filters, func(string) (bool, []string) { return true, nil })
		if err != nil {
			return cleared, fmt.Errorf("forget device: %w", err)
		}
		return cleared, nil
	}
	return 0, fmt.Errorf("forget device: %w", errors.Join(errs...))
}

// connectExtra opens an additional session that accepts retained messages of any size. The caller closes it with end.
func (l *Link) connectExtra(ctx context.Context, to address.Address, suffix string) (*session, error) {
	s, err := l.connect(ctx, to, identity{id: l.ClientID + suffix, inbound: 2 * topicLimit, largest: math.MaxInt})
	if err == nil {
		go s.callPaho()
	}
	return s, err
}

func (s *session) end() {
	s.paho.Disconnect(100)
	s.fail(errStopped)
}

// clearRetained clears the retained topics matching the filters for which judge returns true, and returns their number. judge may return
// further filters to subscribe to.
func (s *session) clearRetained(ctx context.Context, filters []string, judge func(topic string) (clear bool, more []string)) (int, error) {
	// The broker sends what it retains right after its acknowledgement; silence means that this was all.
	const silence = 500 * time.Millisecond
	limit := s.link.AckTimeout
	timer := time.NewTimer(limit)
	defer timer.Stop()
	cleared := 0
	var request subscription
	for {
		if request.token == nil && len(filters) > 0 {
			if request = s.subscribeTo(filters, timer.C); request.token == nil {
				return cleared, s.noAnswerError()
			}
			filters = nil
			timer.Reset(limit)
		}
		select {
		case <-request.done:
			if err := request.refused(); err != nil {
				return cleared, err
			}
			request = subscription{}
			timer.Reset(silence)
		case m := <-s.inbound:
			if !m.Retained() || len(m.Payload()) == 0 {
				continue
			}
			timer.Reset(silence)
			gone, more := judge(m.Topic())
			filters = append(filters, more...)
			if !gone {
				continue
			}
			if err := s.clear(ctx, m); err != nil {
				return cleared, err
			}
			cleared++
		case <-timer.C:
			if request.token != nil {
				return cleared, fmt.Errorf("broker did not answer for %v", limit)
			}
			return cleared, nil
		case <-s.done:
			return cleared, s.err
		case <-ctx.Done():
			return cleared, ctx.Err()
		}
	}
}

// refused returns why the broker rejected the subscription or one of its filters, or nil.
func (s *subscription) refused() error {
	for _, filter := range slices.Sorted(maps.Keys(s.token.Result())) {
		if s.token.Result()[filter] >= failureCode {
			return fmt.Errorf("the broker refuses this client %s (check what it allows)", filter)
		}
	}
	return s.token.Error()
}

// clear deletes a retained message and waits for the acknowledgement.
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

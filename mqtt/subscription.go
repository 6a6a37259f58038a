package mqtt

import (
	"context"
	"errors"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"
)

// subscription is a pending SUBSCRIBE.
type subscription struct {
	done  <-chan struct{}
	token *paho.SubscribeToken
}

// subscribe subscribes to the client's own filters.
func (s *session) subscribe() subscription {
	filters := s.link.device.subscriptions()
	if len(filters) == 0 {
		return subscription{}
	}
	return s.subscribeTo(filters, nil)
}

// subscribeTo subscribes to filters. It returns the zero subscription if the session has ended or the limit has fired.
func (s *session) subscribeTo(filters []string, limit <-chan time.Time) subscription {
	wanted := map[string]byte{}
	for _, filter := range filters {
		wanted[filter] = 1
	}
	token, ok := s.call(func() paho.Token { return s.paho.SubscribeMultiple(wanted, nil) }, limit).(*paho.SubscribeToken)
	if !ok {
		return subscription{}
	}
	return subscription{done: token.Done(), token: token}
}

// report logs the filters that the broker refused.
func (s *subscription) report(l *Link) {
	if err := s.token.Error(); err != nil {
		l.Logger.Warn("mqtt cannot subscribe", "error", err)
	}
	for filter, code := range s.token.Result() {
		if code >= failureCode { // some brokers answer with the codes of MQTT 5
			l.device.refusedFilter(filter)
		}
	}
}

// receive queues a message on paho's goroutine, which must not block.
func (s *session) receive(m paho.Message) {
	select {
	case s.inbound <- m:
	default:
		s.link.device.refuse(m.Topic(), errors.New("too many commands at once"))
	}
}

// handleInbound hands received messages to the device until the session ends.
func (s *session) handleInbound(ctx context.Context) {
	for {
		select {
		case m := <-s.inbound:
			s.link.device.receive(ctx, s.broker, m)
		case <-s.done:
			return
		case <-ctx.Done():
			return
		}
	}
}

package mqtt

import (
	"context"

	paho "github.com/eclipse/paho.mqtt.golang"
)

// inboundLimit bounds the commands that wait to be handled; more are refused.
const inboundLimit = 64

// subscription is a subscribe request under way.
type subscription struct {
	done  <-chan struct{}
	token paho.Token
}

func (s *session) subscribe() subscription { return subscription{} }

func (s *subscription) report(*Client) {}

func (s *session) receive(m paho.Message) {}

func (s *session) handleInbound(ctx context.Context) {}

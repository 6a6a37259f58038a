package mqttconfig

import (
	"context"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/site"
	"github.com/edge-infer/edge-infer/mqtt/spool"
)

// forgetLimit bounds how long a broker may take to send its retained messages.
const forgetLimit = 30 * time.Second

// Forget removes the retained messages and the Home Assistant discovery of a decommissioned device from its broker. It returns the number
// of removed messages.
func Forget(ctx context.Context, o *site.Outputs) (cleared int, err error) {
	if len(o.MQTT.Brokers()) == 0 {
		return 0, config.Usagef("forget-discovery needs a broker, give --mqtt tcp://host:1883")
	}
	client := NewClient(o, o.MQTT.Brokers())
	client.DiscoveryPrefix = DiscoveryPrefix
	client.Spool = spool.Config{}
	if err := client.Open(); err != nil {
		return 0, err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, forgetLimit)
	defer cancel()
	return client.Forget(ctx)
}

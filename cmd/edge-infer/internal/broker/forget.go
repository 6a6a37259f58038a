package broker

import (
	"context"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/mqtt/spool"
)

// forgetLimit is how long a broker may take to name everything that it retains.
const forgetLimit = 30 * time.Second

// Forget takes a decommissioned device off its broker: every retained message of it and its Home Assistant discovery. It gives how many
// messages were removed.
func Forget(ctx context.Context, c *config.Config) (cleared int, err error) {
	if len(c.MQTT.Brokers()) == 0 {
		return 0, config.Usagef("forget-discovery needs a broker, give --mqtt tcp://host:1883")
	}
	client := NewClient(c, c.MQTT.Brokers())
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

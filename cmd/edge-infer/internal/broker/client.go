package broker

import (
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/mqtt"
	"github.com/edge-infer/edge-infer/mqtt/credentials"
	"github.com/edge-infer/edge-infer/mqtt/spool"
	"github.com/edge-infer/edge-infer/mqtt/topic"
)

// DiscoveryPrefix is Home Assistant's default discovery prefix.
const DiscoveryPrefix = "homeassistant"

// NewClient returns the configured MQTT client for the given brokers.
func NewClient(c *config.Config, brokers []string) *mqtt.Client {
	m := &c.MQTT
	return &mqtt.Client{
		Device: c.Name, CountInterval: m.CountInterval,
		Link: mqtt.Link{
			Brokers: brokers, User: m.User, Password: credentials.Secret(m.Password), PasswordFile: m.PasswordFile,
			TLS:   credentials.TLS{CAFile: m.CA, CertificateFile: m.Certificate, KeyFile: m.Key, Insecure: m.Insecure},
			Spool: spool.Config{Directory: m.Spool}, MaxPacket: m.MaxPacket,
		},
		Frigate: topic.Frigate(m.Frigate), DeepStream: m.DeepStream, DeepStreamFull: m.DeepStreamSchema == config.DeepStreamFull,
	}
}

package mqttconfig

import (
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/site"
	"github.com/edge-infer/edge-infer/mqtt"
	"github.com/edge-infer/edge-infer/mqtt/credentials"
	"github.com/edge-infer/edge-infer/mqtt/spool"
	"github.com/edge-infer/edge-infer/mqtt/topic"
)

// DiscoveryPrefix is Home Assistant's default discovery prefix.
const DiscoveryPrefix = "homeassistant"

// NewClient returns the configured MQTT client for the given brokers.
func NewClient(o *site.Outputs, brokers []string) *mqtt.Client {
	m := &o.MQTT
	return &mqtt.Client{
		Device: o.Device, CountInterval: m.CountInterval,
		Link:    mqtt.Link{Access: Access(m, brokers), Spool: spool.Config{Directory: m.Spool}},
		Frigate: topic.Frigate(m.Frigate), DeepStream: m.DeepStream, DeepStreamFull: m.DeepStreamSchema == config.DeepStreamFull,
	}
}

// Access returns how a client logs in to the given brokers.
func Access(m *config.MQTT, brokers []string) mqtt.Access {
	return mqtt.Access{
		Brokers: brokers, User: m.User, Password: credentials.Secret(m.Password), PasswordFile: m.PasswordFile,
		TLS:       credentials.TLS{CAFile: m.CA, CertificateFile: m.Certificate, KeyFile: m.Key, Insecure: m.Insecure},
		MaxPacket: m.MaxPacket,
	}
}

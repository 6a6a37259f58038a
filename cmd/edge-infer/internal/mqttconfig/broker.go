// Package mqttconfig creates the MQTT client and the embedded broker from the configuration.
package mqttconfig

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"syscall"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	embedded "github.com/edge-infer/edge-infer/mqtt/broker"
	"github.com/edge-infer/edge-infer/mqtt/credentials"
	"github.com/edge-infer/edge-infer/mqtt/topic"
)

// New returns the configured embedded broker, listening at address.
func New(m *config.MQTT, address string, logger *slog.Logger) *embedded.Broker {
	return &embedded.Broker{
		Address: address, User: m.User, Password: credentials.Secret(m.Password), PasswordFile: m.PasswordFile, Logger: logger,
		TLS: credentials.TLS{CAFile: m.CA, CertificateFile: m.Certificate, KeyFile: m.Key},
	}
}

// Open starts the embedded broker with the user, password and certificate of m. If the default address is in use, by mosquitto for
// instance, it listens on a free port; a configured address in use is an error.
func Open(m *config.MQTT, logger *slog.Logger) (*embedded.Broker, error) {
	first := New(m, m.Listen, logger)
	err := first.Open()
	if err == nil {
		return first, nil
	}
	if m.Listen != config.Default().MQTT.Listen || !errors.Is(err, syscall.EADDRINUSE) {
		return nil, err
	}
	host, _, _ := net.SplitHostPort(m.Listen)
	logger.Info("default port of the embedded broker is taken, using a free one", "address", m.Listen)
	second := New(m, net.JoinHostPort(host, "0"), logger)
	return second, second.Open()
}

// SubscribeCommand returns the shell command that prints all messages of the device.
func SubscribeCommand(address, device string) string {
	host, port, _ := net.SplitHostPort(address)
	return fmt.Sprintf("mosquitto_sub -h %s -p %s -v -t '%s/%s/#'", host, port, topic.DefaultRoot, device)
}

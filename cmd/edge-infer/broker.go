package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"syscall"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/mqtt"
)

// openBroker starts the embedded broker; user, password and certificate of m are then what it asks of clients and shows them. When the default
// address is taken, by a mosquitto for instance, it takes a free port: only an address that somebody chose is worth failing for.
func openBroker(m *config.MQTT, logger *slog.Logger) (*mqtt.Broker, error) {
	broker := func(address string) *mqtt.Broker {
		return &mqtt.Broker{
			Address: address, User: m.User, Password: password(), PasswordFile: passwordFile(m.PasswordFile), Logger: logger,
			TLS: mqtt.TLS{CAFile: m.CA, CertificateFile: m.Certificate, KeyFile: m.Key},
		}
	}
	first := broker(m.Listen)
	err := first.Open()
	if err == nil {
		return first, nil
	}
	if m.Listen != config.Default().MQTT.Listen || !errors.Is(err, syscall.EADDRINUSE) {
		return nil, err
	}
	host, _, _ := net.SplitHostPort(m.Listen)
	logger.Info("default port of the embedded broker is taken, using a free one", "address", m.Listen)
	second := broker(net.JoinHostPort(host, "0"))
	return second, second.Open()
}

// subscribeCommand is what a person types to see everything the device publishes.
func subscribeCommand(address, device string) string {
	host, port, _ := net.SplitHostPort(address)
	return fmt.Sprintf("mosquitto_sub -h %s -p %s -v -t '%s/%s/#'", host, port, mqtt.DefaultRoot, device)
}

// password is the one in the environment; a password file goes before it.
func password() mqtt.Secret { return mqtt.Secret(os.Getenv("EDGE_INFER_MQTT_PASSWORD")) }

// passwordFile is what is configured, else the credential mqtt-password that systemd hands over when it holds anything.
func passwordFile(configured string) string {
	credentials := os.Getenv("CREDENTIALS_DIRECTORY")
	if configured != "" || credentials == "" {
		return configured
	}
	path := filepath.Join(credentials, "mqtt-password")
	if info, err := os.Stat(path); err != nil || info.Size() == 0 {
		return ""
	}
	return path
}

// spoolDirectory is where events wait for a broker that is away: what is configured, else the state directory that systemd gives, else the
// user's. Empty keeps them in memory.
func spoolDirectory(configured, device string) string {
	if configured != "" {
		return configured
	}
	if state := os.Getenv("STATE_DIRECTORY"); state != "" {
		return filepath.Join(filepath.SplitList(state)[0], "spool")
	}
	state := os.Getenv("XDG_STATE_HOME")
	if state == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return ""
		}
		state = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(state, "edge-infer", device, "spool")
}

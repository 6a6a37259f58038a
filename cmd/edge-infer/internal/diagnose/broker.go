package diagnose

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"syscall"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/mqttconfig"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/site"
	"github.com/edge-infer/edge-infer/mqtt/spool"
)

// broker checks that each broker accepts this device, or that the embedded one can listen.
func (d *Doctor) broker(ctx context.Context) []Check {
	const name = "MQTT broker"
	m := &d.Config.MQTT
	switch m.URL {
	case config.Off:
		return []Check{ok(name, "off")}
	case config.Embedded:
		return []Check{embedded(name, m.Listen)}
	}
	client := mqttconfig.NewClient(site.ResolveOutputs(d.Config), m.Brokers())
	client.ConnectTimeout, client.Spool, client.Logger = d.Timeout, spool.Config{}, slog.New(slog.DiscardHandler)
	if err := client.Open(); err != nil {
		return []Check{fail(name, "correct the mqtt settings", "%v", err)}
	}
	defer client.Close()
	if m.Discovery {
		client.DiscoveryPrefix = mqttconfig.DiscoveryPrefix
	}
	var checks []Check
	for _, login := range client.Login(ctx) {
		if login.Error == "" {
			checks = append(checks, granted(name, login.Broker, d.Config.Name, client.Refused(ctx, login.Broker, m.Control)))
			continue
		}
		remedy := cmp.Or(login.Hint, "check address, user and password")
		checks = append(checks, fail(name, remedy, "%s: %s", login.Broker, login.Error))
	}
	return checks
}

// granted reports what a broker that accepts the device refuses it.
func granted(name, broker, device string, refused []string) Check {
	if len(refused) == 0 {
		return ok(name, "%s accepts %q", broker, device)
	}
	return warn(name, "allow this client to do so on the broker (mosquitto: acl_file)", "%s accepts %q, but %s", broker, device,
		strings.Join(refused, "; "))
}

// embedded checks that the listener's address is free. A default address in use, for instance by a running edge-infer, is no failure: run
// chooses another port.
func embedded(name, address string) Check {
	listener, err := net.Listen("tcp", address)
	switch {
	case err == nil:
		listener.Close()
		return ok(name, "embedded, %s is available", address)
	case errors.Is(err, syscall.EADDRINUSE):
		return failIf(address != config.Default().MQTT.Listen, warn(name,
			"stop the program that listens there (ss -ltnp shows it), or set another --mqtt-listen",
			"embedded, but %s is in use", address))
	}
	return fail(name, "set --mqtt-listen to an address of this machine", "embedded: %v", err)
}

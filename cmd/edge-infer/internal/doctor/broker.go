package doctor

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"syscall"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/broker"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/mqtt/spool"
)

// broker says whether each broker answers and takes this device, or whether the embedded one can listen.
func (d *Doctor) broker(ctx context.Context) []Finding {
	const check = "MQTT broker"
	m := &d.Config.MQTT
	switch m.URL {
	case config.Off:
		return []Finding{ok(check, "off")}
	case config.Embedded:
		return []Finding{embedded(check, m.Listen)}
	}
	client := broker.NewClient(d.Config, m.Brokers())
	client.ConnectTimeout, client.Spool, client.Logger = d.Timeout, spool.Config{}, slog.New(slog.DiscardHandler)
	if err := client.Open(); err != nil {
		return []Finding{fail(check, "correct the mqtt settings", "%v", err)}
	}
	defer client.Close()
	if m.Discovery {
		client.DiscoveryPrefix = broker.DiscoveryPrefix
	}
	var found []Finding
	for _, login := range client.Login(ctx) {
		if login.Error == "" {
			found = append(found, allowed(check, login.Broker, d.Config.Name, client.Refused(ctx, login.Broker, m.Control)))
			continue
		}
		fix := login.Hint
		if fix == "" {
			fix = "check address, user and password"
		}
		found = append(found, fail(check, fix, "%s: %s", login.Broker, login.Error))
	}
	return found
}

// allowed is about a broker that takes the device and refuses it some things, or none.
func allowed(check, broker, device string, refused []string) Finding {
	if len(refused) == 0 {
		return ok(check, "%s takes %q", broker, device)
	}
	return warn(check, "allow this client to do so on the broker (mosquitto: acl_file)", "%s takes %q, but %s", broker, device,
		strings.Join(refused, "; "))
}

// embedded tries the listener's address. A default that is taken, by a running edge-infer for instance, is no failure: run takes another
// port.
func embedded(check, address string) Finding {
	listener, err := net.Listen("tcp", address)
	switch {
	case err == nil:
		listener.Close()
		return ok(check, "embedded, %s is free", address)
	case errors.Is(err, syscall.EADDRINUSE):
		return worse(address != config.Default().MQTT.Listen, warn(check,
			"stop what listens there (ss -ltnp shows it), or name another --mqtt-listen",
			"embedded, but %s is taken", address))
	}
	return fail(check, "name an address of this machine with --mqtt-listen", "embedded: %v", err)
}

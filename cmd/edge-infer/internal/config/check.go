package config

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/edge-infer/edge-infer/engine/triton"
	"github.com/edge-infer/edge-infer/internal/redact"
	"github.com/edge-infer/edge-infer/mqtt/address"
)

// check validates a setting.
type check func() error

// mustError reports an invalid value and the condition that it must meet.
type mustError struct {
	value any
	want  string
}

func must(value any, want string) error { return mustError{value, want} }

// Error returns the value, without passwords of addresses, and the condition; callers put the setting's name before it.
func (e mustError) Error() string {
	return fmt.Sprintf("%q %s", redact.Text(fmt.Sprint(e.value)), e.want)
}

func oneOf(target *string, allowed ...string) check {
	return func() error {
		if slices.Contains(allowed, *target) {
			return nil
		}
		return must(*target, "must be "+alternatives(allowed))
	}
}

func alternatives(names []string) string {
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

func within[T int | float64](target *T, low, high T) check {
	return func() error {
		if *target >= low && *target <= high {
			return nil
		}
		return must(*target, fmt.Sprintf("must be %v to %v", low, high))
	}
}

// share checks that a value is over 0 and at most 1.
func share(target *float64) check {
	return func() error {
		if *target > 0 && *target <= 1 {
			return nil
		}
		return must(*target, "must be over 0 and at most 1")
	}
}

// openShare checks that a value is between 0 and 1, both excluded.
func openShare(target *float64) check {
	return func() error {
		if *target > 0 && *target < 1 {
			return nil
		}
		return must(*target, "must be over 0 and under 1")
	}
}

// topic checks one level of an MQTT topic.
func topic(target *string) check {
	return func() error {
		if strings.ContainsAny(*target, "+/#") {
			return must(*target, "must be a name without + / #")
		}
		if want := checkVisibleName(*target); want != "" {
			return must(*target, want)
		}
		return nil
	}
}

// topicPath checks levels of an MQTT topic; empty is valid.
func topicPath(target *string) check {
	return func() error {
		emptyLevel := *target != "" && slices.Contains(strings.Split(*target, "/"), "")
		if strings.ContainsAny(*target, "+#\x00") || strings.HasPrefix(*target, "$") || emptyLevel {
			return must(*target, "must be a topic without +, #, a leading $ and empty levels")
		}
		return nil
	}
}

// backends are the values of engine.backend without an address.
var backends = []string{Auto, "tensorrt", "onnxruntime", "onnxruntime=cuda", "onnxruntime=cpu"}

func (e *Engine) checkBackend() error {
	if addresses, remote := strings.CutPrefix(e.Backend, triton.Name+"="); remote {
		if err := triton.Check(addresses); err != nil {
			return err
		}
		return nil
	}
	return oneOf(&e.Backend, append(slices.Clone(backends), triton.Name+"=ADDRESS")...)()
}

// checkPlugins refuses plugins with a backend that does not load them. The engine reports missing files.
func (e *Engine) checkPlugins() error {
	if len(e.Plugins) == 0 || e.Backend == Auto || e.Backend == "tensorrt" {
		return nil
	}
	return must(e.Plugins[0], "is TensorRT's: engine.backend must be tensorrt or auto, not "+e.Backend)
}

// OnServers reports whether the network runs on other machines.
func (e *Engine) OnServers() bool { return strings.HasPrefix(e.Backend, triton.Name+"=") }

func (r *Remote) checkTimeout() error {
	if r.Timeout >= time.Millisecond && r.Timeout <= time.Hour {
		return nil
	}
	return must(r.Timeout, "must be 1ms to 1h")
}

func (e *Engine) checkGPU() error {
	if _, _, err := parseDevices(e.GPU); err != nil {
		return must(e.GPU, err.Error())
	}
	return nil
}

func (m *MQTT) checkURL() error {
	for _, broker := range m.Brokers() {
		a, err := address.Parse(broker)
		switch {
		case err == nil && !strings.Contains(broker, ":"): // more likely a slip in a word than a host
			return must(broker, "must be embedded, off, or like tcp://host:1883")
		case err != nil && (strings.Contains(m.URL, "@") || maybeUser(broker)): // a password with a space or a comma is cut off there
			return must(m.URL, "must be like tcp://host:1883, without a user and a password")
		case err != nil:
			return err
		case a.Password != "":
			return must(a, "must not hold a password: use mqtt.password_file")
		}
	}
	return nil
}

// maybeUser reports whether a broker's address is rather the beginning of one with a user and a password than a host and a wrong port.
func maybeUser(broker string) bool {
	_, host, found := strings.Cut(broker, "://")
	host, _, _ = strings.Cut(host, ":")
	return found && redact.Text(broker) != broker && net.ParseIP(host) == nil
}

func (m *MQTT) checkListen() error {
	if m.URL != Embedded {
		return nil
	}
	host, _, err := net.SplitHostPort(m.Listen)
	if err != nil {
		return must(m.Listen, "must be host:port")
	}
	if m.User == "" && m.CA == "" && host != "localhost" && !net.ParseIP(host).IsLoopback() {
		return must(m.Listen, "is reached by other machines: set mqtt.user and mqtt.password_file, "+
			"or mqtt.ca for client certificates, or listen on 127.0.0.1")
	}
	return nil
}

func (m *MQTT) checkMaxPacket() error {
	if m.MaxPacket == 0 || m.MaxPacket >= 1024 && m.MaxPacket <= 256<<20 {
		return nil
	}
	return must(m.MaxPacket, "must be 0, or 1024 to 268435456")
}

func (w *Web) checkListen() error {
	if w.Listen != Off {
		if _, _, err := net.SplitHostPort(w.Listen); err != nil {
			return must(w.Listen, "must be host:port or off")
		}
	}
	return nil
}

func (w *Web) checkUser() error {
	if strings.ContainsRune(w.User, ':') {
		return must(w.User, "must be a name without :")
	}
	return nil
}

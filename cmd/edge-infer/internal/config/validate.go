package config

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
)

// Validate reports the first setting that cannot work, by its key.
func (c *Config) Validate() error {
	if strings.ContainsAny(c.Device, "+/#\x00") || c.Device == "" {
		return invalid("device", c.Device, "must be a name without + / #")
	}
	seen := map[string]bool{}
	for i, camera := range c.Cameras {
		key := fmt.Sprintf("cameras[%d]", i)
		switch {
		case camera.URI == "":
			return invalid(key+".uri", "", "must be an address, a file, a device number or demo")
		case camera.Name == "" || strings.ContainsAny(camera.Name, "+/# \x00"):
			return invalid(key+".name", camera.Name, "must be a name without + / # and spaces")
		case seen[camera.Name]:
			return invalid(key+".name", camera.Name, "is used twice")
		case camera.Interval < 0:
			return invalid(key+".interval", camera.Interval, "must be 1 or more")
		case camera.Stall < 0:
			return invalid(key+".stall", camera.Stall, "must be positive")
		}
		seen[camera.Name] = true
	}
	if err := oneOf("model.layout", c.Model.Layout, "auto", "yolov5", "yolov8", "end2end", "classify"); err != nil {
		return err
	}
	if err := oneOf("engine.backend", c.Engine.Backend, "auto", "tensorrt", "onnxruntime", "onnxruntime=cuda", "onnxruntime=cpu"); err != nil {
		return err
	}
	if err := oneOf("engine.precision", c.Engine.Precision, "auto", "fp32", "fp16", "int8"); err != nil {
		return err
	}
	if _, _, err := parseDevices(c.Engine.Device); err != nil {
		return invalid("engine.device", c.Engine.Device, err.Error())
	}
	switch {
	case c.Engine.Threads < 0 || c.Engine.Threads > 1024:
		return invalid("engine.threads", c.Engine.Threads, "must be 0 to 1024")
	case c.Engine.Batch < 0 || c.Engine.Batch > 256:
		return invalid("engine.batch", c.Engine.Batch, "must be 0 to 256")
	case !(c.Detect.Confidence > 0 && c.Detect.Confidence <= 1):
		return invalid("detect.confidence", c.Detect.Confidence, "must be over 0 and at most 1")
	case !(c.Detect.IoU > 0 && c.Detect.IoU <= 1):
		return invalid("detect.iou", c.Detect.IoU, "must be over 0 and at most 1")
	case c.Detect.Max < 1 || c.Detect.Max > 30000:
		return invalid("detect.max", c.Detect.Max, "must be 1 to 30000")
	}
	if err := c.MQTT.validate(); err != nil {
		return err
	}
	if c.Snapshots.Keep < 1 || c.Snapshots.Keep > 1000000 {
		return invalid("snapshots.keep", c.Snapshots.Keep, "must be 1 to 1000000")
	}
	if err := c.Web.validate(); err != nil {
		return err
	}
	if !(c.Thermal.Margin >= 0 && c.Thermal.Margin <= 100) || !(c.Thermal.Hysteresis >= 0 && c.Thermal.Hysteresis <= 100) {
		return fmt.Errorf("thermal.margin and thermal.hysteresis must be 0 to 100 degrees")
	}
	return oneOf("log", c.Log, "debug", "info", "warn", "error")
}

func (m *MQTT) validate() error {
	for _, broker := range m.Brokers() {
		address, err := url.Parse(broker)
		if err != nil || address.Host == "" {
			return invalid("mqtt.url", redact(broker), "must be embedded, off, or like tcp://host:1883")
		}
		if err := oneOf("mqtt.url", address.Scheme, "tcp", "tls", "ssl", "mqtt", "mqtts", "ws", "wss"); err != nil {
			return err
		}
		if _, password := address.User.Password(); password {
			return invalid("mqtt.url", redact(broker), "must not hold a password: use mqtt.password_file")
		}
	}
	if m.URL == Embedded {
		if _, _, err := net.SplitHostPort(m.Listen); err != nil {
			return invalid("mqtt.listen", m.Listen, "must be host:port")
		}
	}
	if (m.Certificate == "") != (m.Key == "") {
		return fmt.Errorf("mqtt.certificate and mqtt.key: one needs the other")
	}
	return nil
}

func (w *Web) validate() error {
	if w.Listen != Off {
		if _, _, err := net.SplitHostPort(w.Listen); err != nil {
			return invalid("web.listen", w.Listen, "must be host:port or off")
		}
	}
	switch {
	case (w.Certificate == "") != (w.Key == ""):
		return fmt.Errorf("web.certificate and web.key: one needs the other")
	case (w.User == "") != (w.PasswordFile == ""):
		return fmt.Errorf("web.user and web.password_file: one needs the other")
	case w.User != "" && w.TokenFile != "":
		return fmt.Errorf("web.user and web.token_file: only one of them can be")
	case strings.ContainsRune(w.User, ':'):
		return invalid("web.user", w.User, "must be a name without :")
	}
	return nil
}

// Brokers is the list of broker addresses; empty when MQTT is off or embedded.
func (m *MQTT) Brokers() []string {
	if m.URL == Off || m.URL == Embedded {
		return nil
	}
	return strings.FieldsFunc(m.URL, func(r rune) bool { return r == ',' || r == ' ' })
}

// redact takes a password out of an address.
func redact(address string) string {
	parsed, err := url.Parse(address)
	if err != nil {
		return "(unreadable)"
	}
	return parsed.Redacted()
}

func oneOf(key, value string, allowed ...string) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	return invalid(key, value, "must be "+strings.Join(allowed[:len(allowed)-1], ", ")+" or "+allowed[len(allowed)-1])
}

func invalid(key string, value any, want string) error {
	return fmt.Errorf("%s %q %s", key, fmt.Sprint(value), want)
}

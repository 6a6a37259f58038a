package state

import (
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/site"
	"github.com/edge-infer/edge-infer/mqtt"
)

// RemoteSettings returns settings as the MQTT client publishes them.
func RemoteSettings(s site.Settings) mqtt.Settings {
	return mqtt.Settings{Detect: s.Detect, Threshold: s.Confidence, Interval: s.Interval, Labels: s.Classes}
}

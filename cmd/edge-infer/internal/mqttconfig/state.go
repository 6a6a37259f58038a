package mqttconfig

import "github.com/edge-infer/edge-infer/mqtt"

// State describes the connection of a client; nil is "off".
func State(c *mqtt.Connection) string {
	if c == nil {
		return "off"
	}
	switch {
	case c.Connected && c.Conflict != "":
		return "connected, another machine has the same name: " + c.Conflict
	case c.Connected:
		return "connected"
	case c.Error == "":
		return "connecting"
	}
	return "away: " + c.Error
}

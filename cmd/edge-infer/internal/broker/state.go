package broker

import "github.com/edge-infer/edge-infer/mqtt"

// State describes the connection state of a client; nil is "off".
func State(client *mqtt.Client) string {
	if client == nil {
		return "off"
	}
	c := client.Connection()
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

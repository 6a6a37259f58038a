package outputs

import (
	"errors"

	"github.com/edge-infer/edge-infer/mqtt"
	"github.com/edge-infer/edge-infer/mqtt/command"
)

// commands carries out commands that did not come over MQTT.
type commands struct {
	controller mqtt.Controller
	values     *mqtt.RemoteValues // what commands have set in this run and earlier ones
	client     *mqtt.Client       // publishes what commands set; nil without MQTT
}

// Execute carries out a command.
func (c *commands) Execute(cmd command.Command) error {
	switch {
	case c.controller == nil:
		return errors.New("settings cannot be changed yet: the run is starting")
	case c.client != nil && c.client.Controller != nil:
		return c.client.Execute(cmd)
	}
	_, err := c.values.Execute(c.controller, cmd)
	return err
}

// Close writes what has not been written.
func (c *commands) Close() {
	if c.values != nil {
		c.values.Close()
	}
}

package mqtt

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"

	"github.com/edge-infer/edge-infer/mqtt/command"
	"github.com/edge-infer/edge-infer/mqtt/payload"
	"github.com/edge-infer/edge-infer/mqtt/topic"
)

// inboundLimit bounds the commands waiting for execution; more are refused.
const inboundLimit = 64

// Controller executes remote commands. Its methods are called one at a time, with valid values and the name of a camera passed to
// Client.Settings. They must return soon and must not call Client.Close. Restart may take its time: it is called in a goroutine of its own,
// which Close does not wait for, and not again before it has returned. An error is published on the error topic; otherwise the new value is
// published on the control's state topic.
type Controller interface {
	SetDetect(camera string, on bool) error
	SetThreshold(camera string, threshold float64) error // 0 to 1
	SetInterval(camera string, frames int) error         // infer every frames-th frame, 1 to 1000
	SetLabels(camera string, labels []string) error      // nil: all labels
	// Withdraw puts the configured value of a control in force again and returns the values that are in force then.
	Withdraw(camera, control string) (Settings, error)
	Snapshot(camera string) error
	Reload() error
	Restart() error
}

// Settings are the values of a camera's controls.
type Settings struct {
	Detect    bool
	Threshold float64
	Interval  int
	Labels    []string // nil: all
}

// Settings publishes the values of a camera's controls, QoS 1 and retained, and opens the controls for commands.
func (c *Client) Settings(camera string, settings Settings) {
	c.mu.Lock()
	c.cameras[topic.Level(camera)] = camera
	c.mu.Unlock()
	c.setting(camera, command.Detect, onOff(settings.Detect))
	c.setting(camera, command.Threshold, string(payload.AppendDecimal(nil, settings.Threshold)))
	c.setting(camera, command.Interval, strconv.Itoa(settings.Interval))
	c.setting(camera, command.Labels, joinLabels(settings.Labels))
}

// setting publishes the value of a control unless the camera was removed meanwhile. Holding the lock throughout orders it before or after
// the removal.
func (c *Client) setting(camera, control, value string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cameras[topic.Level(camera)] != camera {
		return
	}
	keys := []topicKey{{kind: kindSetting, camera: camera, name: control}}
	if c.Frigate != "" && control == command.Detect {
		keys = append(keys, topicKey{kind: kindFrigateSetting, camera: camera, name: control})
	}
	for _, key := range keys {
		if s := c.mailboxLocked(key); s != nil {
			s.Put(func(buf []byte) []byte { return append(buf, value...) })
		}
	}
}

func onOff(on bool) string {
	if on {
		return "ON"
	}
	return "OFF"
}

func joinLabels(labels []string) string {
	if labels == nil {
		return command.AllLabels
	}
	return strings.Join(labels, ",")
}

// execute calls the controller, saves the new value and publishes it.
func (c *Client) execute(cmd command.Command) error {
	if cmd.Withdraw {
		settings, err := c.Controller.Withdraw(cmd.Camera, cmd.Control)
		if err == nil {
			c.ForgetRemote(cmd.Camera, cmd.Control)
			c.Settings(cmd.Camera, settings)
		}
		return err
	}
	var err error
	value := ""
	switch cmd.Control {
	case command.Detect:
		err, value = c.Controller.SetDetect(cmd.Camera, cmd.On), onOff(cmd.On)
	case command.Threshold:
		err, value = c.Controller.SetThreshold(cmd.Camera, cmd.Threshold), string(payload.AppendDecimal(nil, cmd.Threshold))
	case command.Interval:
		err, value = c.Controller.SetInterval(cmd.Camera, cmd.Interval), strconv.Itoa(cmd.Interval)
	case command.Labels:
		err, value = c.Controller.SetLabels(cmd.Camera, cmd.Labels), joinLabels(cmd.Labels)
	case command.Snapshot:
		return c.Controller.Snapshot(cmd.Camera)
	case command.Reload:
		return c.Controller.Reload()
	case command.Restart:
		return c.Controller.Restart()
	}
	if err == nil {
		c.recordRemote(cmd)
		c.setting(cmd.Camera, cmd.Control, value)
	}
	return err
}

// refuse reports a refused command on the error topic, and logs it at most once per second.
func (c *Client) refuse(topic string, reason error) {
	now := time.Now()
	if unreported, logNow := c.refusals.Next(now); logNow {
		c.Logger.Warn("mqtt command refused", "topic", command.Quote(topic), "error", reason, "unreported", unreported)
	}
	c.mailbox(topicKey{kind: kindError}).Put(func(buf []byte) []byte {
		buf = append(buf, payload.Version+`"device":`...)
		buf = payload.AppendString(buf, c.Device)
		buf = payload.AppendTimeField(buf, now)
		buf = append(buf, `,"topic":`...)
		buf = payload.AppendString(buf, topic)
		buf = append(buf, `,"error":`...)
		buf = payload.AppendString(buf, reason.Error())
		return append(buf, '}')
	})
}

// subscription is a pending SUBSCRIBE.
type subscription struct {
	done  <-chan struct{}
	token *paho.SubscribeToken
}

// subscribe subscribes to the client's own filters.
func (s *session) subscribe() subscription {
	filters := s.client.filters(s.client.Controller != nil)
	if len(filters) == 0 {
		return subscription{}
	}
	return s.subscribeTo(filters, nil)
}

// filters returns the filters of commands and of other machines with the same name, if control is set, and of Home Assistant's birth
// message.
func (c *Client) filters(control bool) (filters []string) {
	if control {
		filters = append(filters, c.topics.Base()+"+/set", c.topics.Base()+"+/+/set", c.topics.Machine())
		if c.Frigate != "" {
			filters = append(filters, c.Frigate.Commands(command.Detect))
		}
	}
	if c.DiscoveryPrefix != "" {
		filters = append(filters, c.discovery().Birth())
	}
	return filters
}

// subscribeTo subscribes to filters. It returns the zero subscription if the session has ended or the limit has fired.
func (s *session) subscribeTo(filters []string, limit <-chan time.Time) subscription {
	wanted := map[string]byte{}
	for _, filter := range filters {
		wanted[filter] = 1
	}
	token, ok := s.call(func() paho.Token { return s.paho.SubscribeMultiple(wanted, nil) }, limit).(*paho.SubscribeToken)
	if !ok {
		return subscription{}
	}
	return subscription{done: token.Done(), token: token}
}

// report logs the filters that the broker refused.
func (s *subscription) report(c *Client) {
	if err := s.token.Error(); err != nil {
		c.Logger.Warn("mqtt cannot subscribe", "error", err)
	}
	for filter, code := range s.token.Result() {
		switch {
		case code < failureCode: // some brokers answer with the codes of MQTT 5
		case c.DiscoveryPrefix != "" && filter == c.discovery().Birth():
			c.Logger.Warn("mqtt subscription refused, entities may be missing after a start of Home Assistant "+
				"(check what the broker allows this client)", "filter", filter)
		default:
			c.Logger.Warn("mqtt subscription refused, remote control does not work (check what the broker allows this client)", "filter", filter)
		}
	}
}

// receive queues a message on paho's goroutine, which must not block.
func (s *session) receive(m paho.Message) {
	select {
	case s.inbound <- m:
	default:
		s.client.refuse(m.Topic(), errors.New("too many commands at once"))
	}
}

// handleInbound executes commands until the session ends.
func (s *session) handleInbound(ctx context.Context) {
	c := s.client
	name := func(level string) (string, bool) {
		c.mu.Lock()
		defer c.mu.Unlock()
		camera, known := c.cameras[level]
		return camera, known
	}
	for {
		var m paho.Message
		select {
		case m = <-s.inbound:
		case <-s.done:
			return
		case <-ctx.Done():
			return
		}
		if c.DiscoveryPrefix != "" && m.Topic() == c.discovery().Birth() {
			if string(m.Payload()) == "online" && !m.Retained() {
				c.renewDiscovery()
			}
			continue
		}
		if m.Topic() == c.topics.Machine() {
			if !m.Retained() {
				c.noteMachine(m.Payload())
			}
			continue
		}
		if c.Controller == nil {
			continue
		}
		if m.Retained() {
			// It would be carried out again at every connection.
			if len(m.Payload()) > 0 {
				c.refuse(m.Topic(), errors.New("retained commands are ignored, publish without the retain flag"))
			}
			continue
		}
		base := c.topics.Base()
		if c.Frigate != "" && !strings.HasPrefix(m.Topic(), base) {
			base = string(c.Frigate) + "/"
		}
		cmd, err := command.Parse(base, m.Topic(), m.Payload(), name)
		if errors.Is(err, command.ErrNone) {
			continue
		}
		if err == nil {
			if unreported, logNow := c.commands.Next(time.Now()); logNow {
				c.Logger.Info("mqtt command", "camera", cmd.Camera, "control", cmd.Control, "payload", command.Quote(string(m.Payload())),
					"unreported", unreported)
			}
			if cmd.Control == command.Restart {
				err = s.restart(ctx, m, cmd)
			} else {
				err = s.carryOut(m, cmd)
			}
		}
		if err != nil {
			c.refuse(m.Topic(), err)
		}
	}
}

// carryOut executes a command and reports it as carried out.
func (s *session) carryOut(m paho.Message, cmd command.Command) error {
	c := s.client
	err := c.execute(cmd)
	if err == nil && c.Changed != nil {
		c.Changed(cmd.Camera, cmd.Control, command.Quote(string(m.Payload())), s.broker)
	}
	return err
}

// restart executes a restart in the background: other commands do not wait for it.
func (s *session) restart(ctx context.Context, m paho.Message, cmd command.Command) error {
	c := s.client
	if !c.restarting.CompareAndSwap(false, true) {
		return errors.New("a restart is being prepared already")
	}
	go func() {
		defer c.restarting.Store(false)
		if err := s.carryOut(m, cmd); err != nil && ctx.Err() == nil {
			c.refuse(m.Topic(), err)
		}
	}()
	return nil
}

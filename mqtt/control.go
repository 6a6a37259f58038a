package mqtt

import (
	"context"
	"errors"
	"maps"
	"strconv"
	"strings"
	"sync/atomic"
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

// texts returns the values as they are published, by control.
func (s Settings) texts() map[string]string {
	return map[string]string{
		command.Detect: onOff(s.Detect), command.Threshold: string(payload.AppendDecimal(nil, s.Threshold)),
		command.Interval: strconv.Itoa(s.Interval), command.Labels: joinLabels(s.Labels),
	}
}

// remoteControl executes the commands of a device. Commands are executed one at a time, except restarts.
type remoteControl struct {
	*RemoteValues
	outbox     *outbox
	controller Controller                                  // nil without remote control
	changed    func(camera, control, value, broker string) // may be nil

	cameras            map[string]string // name by topic level, of cameras that have controls; guarded by the outbox's lock
	refusals, commands logLimit
	restarting         atomic.Bool // the controller prepares a restart
}

// Settings publishes the values of a camera's controls, QoS 1 and retained, and opens the controls for commands.
func (r *remoteControl) Settings(camera string, settings Settings) {
	r.outbox.mu.Lock()
	r.cameras[topic.Level(camera)] = camera
	r.outbox.mu.Unlock()
	for control, value := range settings.texts() {
		r.setting(camera, control, value)
	}
}

// setting publishes the value of a control unless the camera was removed meanwhile. Holding the lock throughout orders it before or after
// the removal.
func (r *remoteControl) setting(camera, control, value string) {
	r.outbox.mu.Lock()
	defer r.outbox.mu.Unlock()
	if r.cameras[topic.Level(camera)] != camera {
		return
	}
	keys := []topicKey{{kind: kindSetting, camera: camera, name: control}}
	if r.outbox.frigate != "" && control == command.Detect {
		keys = append(keys, topicKey{kind: kindFrigateSetting, camera: camera, name: control})
	}
	for _, key := range keys {
		if s := r.outbox.mailboxLocked(key); s != nil {
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

// Execute carries out a command as if it had come from the broker: the value is kept and published.
func (r *remoteControl) Execute(cmd command.Command) error {
	published, err := r.RemoteValues.Execute(r.controller, cmd)
	for control, value := range published {
		r.setting(cmd.Camera, control, value)
	}
	return err
}

// refuse reports a refused command on the error topic, and logs it at most once per second.
func (r *remoteControl) refuse(topic string, reason error) {
	now := time.Now()
	if unreported, logNow := r.refusals.Next(now); logNow {
		r.logger.Warn("mqtt command refused", "topic", command.Quote(topic), "error", reason, "unreported", unreported)
	}
	message := struct {
		payload.Header
		Topic string `json:"topic"`
		Error string `json:"error"`
	}{payload.NewHeader(r.outbox.topics.Device, now), topic, reason.Error()}
	r.outbox.mailbox(topicKey{kind: kindError}).Put(func(buf []byte) []byte { return payload.AppendMessage(buf, &message) })
}

// filters returns the filters of commands and of other machines with the same name.
func (r *remoteControl) filters() []string {
	topics := &r.outbox.topics
	filters := []string{topics.Base() + "+/set", topics.Base() + "+/+/set", topics.Machine()}
	if r.outbox.frigate != "" {
		filters = append(filters, r.outbox.frigate.Commands(command.Detect))
	}
	return filters
}

// receive executes a command.
func (r *remoteControl) receive(ctx context.Context, broker string, m paho.Message) {
	if m.Retained() {
		// It would be carried out again at every connection.
		if len(m.Payload()) > 0 {
			r.refuse(m.Topic(), errors.New("retained commands are ignored, publish without the retain flag"))
		}
		return
	}
	base := r.outbox.topics.Base()
	if r.outbox.frigate != "" && !strings.HasPrefix(m.Topic(), base) {
		base = string(r.outbox.frigate) + "/"
	}
	cmd, err := command.Parse(base, m.Topic(), m.Payload(), r.camera)
	if errors.Is(err, command.ErrNone) {
		return
	}
	if err == nil {
		if unreported, logNow := r.commands.Next(time.Now()); logNow {
			r.logger.Info("mqtt command", "camera", cmd.Camera, "control", cmd.Control, "payload", command.Quote(string(m.Payload())),
				"unreported", unreported)
		}
		if cmd.Control == command.Restart {
			err = r.restart(ctx, broker, m, cmd)
		} else {
			err = r.carryOut(broker, m, cmd)
		}
	}
	if err != nil {
		r.refuse(m.Topic(), err)
	}
}

// camera returns the camera of a topic level that takes commands.
func (r *remoteControl) camera(level string) (string, bool) {
	r.outbox.mu.Lock()
	defer r.outbox.mu.Unlock()
	camera, known := r.cameras[level]
	return camera, known
}

// keepOnly closes the controls of other cameras. The caller holds the outbox's lock.
func (r *remoteControl) keepOnly(stay map[owner]bool) {
	maps.DeleteFunc(r.cameras, func(_, camera string) bool { return !stay[owner{camera: camera}] })
}

// carryOut executes a command and reports it as carried out.
func (r *remoteControl) carryOut(broker string, m paho.Message, cmd command.Command) error {
	err := r.Execute(cmd)
	if err == nil && r.changed != nil {
		r.changed(cmd.Camera, cmd.Control, command.Quote(string(m.Payload())), broker)
	}
	return err
}

// restart executes a restart in the background: other commands do not wait for it.
func (r *remoteControl) restart(ctx context.Context, broker string, m paho.Message, cmd command.Command) error {
	if !r.restarting.CompareAndSwap(false, true) {
		return errors.New("a restart is being prepared already")
	}
	go func() {
		defer r.restarting.Store(false)
		if err := r.carryOut(broker, m, cmd); err != nil && ctx.Err() == nil {
			r.refuse(m.Topic(), err)
		}
	}()
	return nil
}

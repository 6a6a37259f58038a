package mqtt

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	mochi "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/listeners"
	"github.com/mochi-mqtt/server/v2/packets"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	embedded "github.com/edge-infer/edge-infer/mqtt/broker"
	"github.com/edge-infer/edge-infer/mqtt/command"
	"github.com/edge-infer/edge-infer/mqtt/mqtttest"
	"github.com/edge-infer/edge-infer/mqtt/spool"
)

// recorder is a controller that notes its calls.
type recorder struct {
	mu    sync.Mutex
	calls []string
	err   error
}

func (r *recorder) note(format string, arguments ...any) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, fmt.Sprintf(format, arguments...))
	return r.err
}

func (r *recorder) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string{}, r.calls...)
}

func (r *recorder) SetDetect(camera string, on bool) error { return r.note("detect %s %v", camera, on) }

func (r *recorder) SetThreshold(camera string, v float64) error {
	return r.note("threshold %s %v", camera, v)
}

func (r *recorder) SetInterval(camera string, n int) error {
	return r.note("interval %s %d", camera, n)
}

func (r *recorder) SetLabels(camera string, labels []string) error {
	return r.note("labels %s %q", camera, labels)
}

func (r *recorder) Withdraw(camera, control string) (Settings, error) {
	return Settings{Detect: true, Threshold: 0.25, Interval: 1}, r.note("withdraw %s %s", camera, control)
}

func (r *recorder) Snapshot(camera string) error { return r.note("snapshot %s", camera) }
func (r *recorder) Reload() error                { return r.note("reload") }
func (r *recorder) Restart() error               { return r.note("restart") }

func TestCommandsAreCarriedOutAndAnswered(t *testing.T) {
	broker := startBroker(t, "")
	sub := mqtttest.Subscribe(t, broker.URL(), "edge-infer/#")
	r := &recorder{}
	c := testClient(broker.URL())
	c.Controller = r
	start(t, c)
	waitConnected(t, c)
	c.Settings("cam/0", Settings{Detect: true, Threshold: 0.25, Interval: 1})
	base := "edge-infer/gate/cam%2F0/"
	sub.WaitLast(t, base+"detect/state", "ON")
	sub.WaitLast(t, base+"threshold/state", "0.25")
	sub.WaitLast(t, base+"interval/state", "1")
	sub.WaitLast(t, base+"labels/state", "*")
	require.Eventually(t, func() bool { // until the subscription is there
		sub.Client.Publish(base+"snapshot/set", 1, false, "PRESS").WaitTimeout(mqtttest.Patience)
		return len(r.all()) > 0
	}, mqtttest.Patience, 20*time.Millisecond)
	for _, step := range []struct{ topic, payload, state string }{
		{base + "detect", "OFF", "OFF"},
		{base + "detect", "on", "ON"},
		{base + "threshold", " 0.5\n", "0.5"},
		{base + "interval", "5", "5"},
		{base + "labels", "person, traffic light", "person,traffic light"},
		{base + "labels", "*", "*"},
		{base + "threshold", "", "0.25"},
		{base + "interval", "Reset", "1"},
	} {
		sub.Client.Publish(step.topic+"/set", 1, false, step.payload).WaitTimeout(mqtttest.Patience)
		sub.WaitLast(t, step.topic+"/state", step.state)
	}
	sub.Client.Publish("edge-infer/gate/reload/set", 1, false, "PRESS").WaitTimeout(mqtttest.Patience)
	sub.Client.Publish("edge-infer/gate/restart/set", 1, false, "PRESS").WaitTimeout(mqtttest.Patience)
	require.Eventually(t, func() bool { calls := r.all(); return calls[len(calls)-1] == "restart" }, mqtttest.Patience, time.Millisecond)
	var calls []string
	for _, call := range r.all() {
		if call != "snapshot cam/0" {
			calls = append(calls, call)
		}
	}
	assert.Equal(t, []string{
		"detect cam/0 false", "detect cam/0 true", "threshold cam/0 0.5", "interval cam/0 5",
		`labels cam/0 ["person" "traffic light"]`, `labels cam/0 []`, "withdraw cam/0 threshold", "withdraw cam/0 interval", "reload", "restart",
	}, calls)
	balanced(t, c)
}

func TestCommandsThatAreRefused(t *testing.T) {
	broker := startBroker(t, "")
	sub := mqtttest.Subscribe(t, broker.URL(), "edge-infer/gate/error", "edge-infer/gate/+/+/state", "edge-infer/gate/cam0/detect/set")
	sub.Client.Publish("edge-infer/gate/cam0/detect/set", 1, true, "OFF").WaitTimeout(mqtttest.Patience)
	// The broker acknowledges before it has handed the message round: a client that subscribes in between gets it as a live command.
	require.Eventually(t, func() bool { return sub.Last("edge-infer/gate/cam0/detect/set") == "OFF" }, mqtttest.Patience, time.Millisecond)
	r := &recorder{}
	c := testClient(broker.URL())
	c.Controller = r
	start(t, c)
	c.Settings("cam0", Settings{Detect: true, Threshold: 0.25, Interval: 1})
	answer := func(topic, want string) {
		t.Helper()
		require.Eventually(t, func() bool {
			var got struct{ Topic, Error string }
			json.Unmarshal([]byte(sub.Last("edge-infer/gate/error")), &got)
			return got.Topic == "edge-infer/gate/"+topic && got.Error == want
		}, mqtttest.Patience, time.Millisecond, "%s: no answer %q, last is %s", topic, want, sub.Last("edge-infer/gate/error"))
	}
	answer("cam0/detect/set", "retained commands are ignored, publish without the retain flag")
	for _, refused := range []struct{ topic, payload, want string }{
		{"cam0/detect/set", "maybe", `want ON or OFF, got "maybe"`},
		{"cam0/threshold/set", "NaN", `want a number from 0 to 1, got "NaN"`},
		{"cam0/threshold/set", "1.5", `want a number from 0 to 1, got "1.5"`},
		{"cam0/threshold/set", "0x1p-2", `want a number from 0 to 1, got "0x1p-2"`},
		{"cam0/interval/set", "0", `want a whole number from 1 to 1000, got "0"`},
		{"cam0/interval/set", "1e3", `want a whole number from 1 to 1000, got "1e3"`},
		{"cam0/labels/set", "a,,b", `want labels with commas between them, or * for all, got "a,,b"`},
		{"cam0/labels/set", strings.Repeat("a,", 100) + "a", "101 labels, at most 100 are taken"},
		{"cam0/snapshot/set", "now", `want PRESS, got "now"`},
		{"cam0/reload/set", "PRESS", "unknown control"},
		{"cam0/colour/set", "red", "unknown control"},
		{"detect/set", "ON", "unknown control"},
		{"cam9/detect/set", "ON", "unknown camera"},
		{"restart/set", "restart", `want PRESS, got "restart"`},
		{"cam0/detect/set", "\xff\xfe", "not UTF-8 text"},
		{"cam0/labels/set", strings.Repeat("x", 5000), "5000 bytes, at most 4096 are read"},
		{"cam0/detect/set", strings.Repeat("y", 50), `want ON or OFF, got "` + strings.Repeat("y", 40) + `" and more`},
	} {
		sub.Client.Publish("edge-infer/gate/"+refused.topic, 1, false, refused.payload).WaitTimeout(mqtttest.Patience)
		answer(refused.topic, refused.want)
	}
	assert.Empty(t, r.all())
	r.mu.Lock()
	r.err = errors.New("camera is busy")
	r.mu.Unlock()
	sub.Client.Publish("edge-infer/gate/cam0/detect/set", 1, false, "OFF").WaitTimeout(mqtttest.Patience)
	answer("cam0/detect/set", "camera is busy")
	assert.Equal(t, "ON", sub.Last("edge-infer/gate/cam0/detect/state"))
	// Clearing a retained message sends an empty one, which withdraws the value and is no error.
	r.mu.Lock()
	r.err = nil
	r.mu.Unlock()
	before := len(sub.Messages("edge-infer/gate/error"))
	sub.Client.Publish("edge-infer/gate/cam0/detect/set", 1, true, "").WaitTimeout(mqtttest.Patience)
	sub.Client.Publish("edge-infer/gate/cam0/detect/set", 1, false, "?").WaitTimeout(mqtttest.Patience)
	answer("cam0/detect/set", `want ON or OFF, got "?"`)
	assert.Len(t, sub.Messages("edge-infer/gate/error"), before+1)
	assert.Contains(t, r.all(), "withdraw cam0 detect")
	balanced(t, c)
}

// openHook lets every client in, to every topic unless publishOnly is set.
type openHook struct {
	mochi.HookBase
	publishOnly bool
}

func (*openHook) ID() string { return "open" }
func (*openHook) Provides(event byte) bool {
	return event == mochi.OnConnectAuthenticate || event == mochi.OnACLCheck
}
func (*openHook) OnConnectAuthenticate(*mochi.Client, packets.Packet) bool { return true }
func (h *openHook) OnACLCheck(_ *mochi.Client, _ string, write bool) bool {
	return write || !h.publishOnly
}

func TestRefusedSubscription(t *testing.T) {
	server := mochi.New(&mochi.Options{Logger: mqtttest.Discard()})
	require.NoError(t, server.AddHook(&openHook{publishOnly: true}, nil))
	listener := listeners.NewTCP(listeners.Config{ID: "tcp", Address: "127.0.0.1:0"})
	require.NoError(t, server.AddListener(listener))
	require.NoError(t, server.Serve())
	defer server.Close()
	log := &mqtttest.Journal{}
	c := testClient("tcp://" + listener.Address())
	c.Controller, c.Logger = &recorder{}, log.Logger()
	start(t, c)
	require.Eventually(t, func() bool {
		return strings.Contains(log.String(), "mqtt subscription refused, remote control does not work")
	}, mqtttest.Patience,
		time.Millisecond)
	c.Count("cam0", "person", 1)
	require.Eventually(t, func() bool { return c.Accounting().State.Delivered == 1 }, mqtttest.Patience, time.Millisecond)
}

func TestNonsenseDoesNotFillTheLog(t *testing.T) {
	broker := startBroker(t, "")
	sub := mqtttest.Subscribe(t, broker.URL(), "edge-infer/gate/error")
	log := &mqtttest.Journal{}
	c := testClient(broker.URL())
	c.Controller, c.Logger = &recorder{}, log.Logger()
	start(t, c)
	waitConnected(t, c)
	begin := time.Now()
	for i := range 500 {
		sub.Client.Publish("edge-infer/gate/cam0/detect/set", 1, false, fmt.Sprint(i)).WaitTimeout(mqtttest.Patience)
	}
	require.Eventually(t, func() bool { return sub.Last("edge-infer/gate/error") != "" && c.Accounting().State.Queued == 0 },
		mqtttest.Patience, time.Millisecond)
	assert.LessOrEqual(t, strings.Count(log.String(), "mqtt command refused"), 1+int(time.Since(begin)/time.Second))
	balanced(t, c)
}

// TestARestartKeepsNoCommandWaiting: what a restart checks before may take minutes.
func TestARestartKeepsNoCommandWaiting(t *testing.T) {
	broker := startBroker(t, "")
	sub := mqtttest.Subscribe(t, broker.URL(), "edge-infer/#")
	r := &heldRestart{recorder: &recorder{}, letGo: make(chan struct{})}
	c := testClient(broker.URL())
	c.Controller = r
	start(t, c)
	waitConnected(t, c)
	c.Settings("cam0", Settings{Detect: true, Threshold: 0.25, Interval: 1})
	command := func(control, value string) {
		sub.Client.Publish("edge-infer/gate/"+control+"/set", 1, false, value).WaitTimeout(mqtttest.Patience)
	}
	command("restart", "PRESS")
	command("cam0/detect", "OFF")
	sub.WaitLast(t, "edge-infer/gate/cam0/detect/state", "OFF")
	command("restart", "PRESS")
	refused := func(reason string) {
		require.Eventually(t, func() bool { return strings.Contains(sub.Last("edge-infer/gate/error"), reason) }, mqtttest.Patience,
			5*time.Millisecond, reason)
	}
	refused("a restart is being prepared already")
	close(r.letGo)
	refused("the next restart is possible in 1m0s")
}

// heldRestart refuses to restart, and takes its time for that.
type heldRestart struct {
	*recorder
	letGo chan struct{}
}

func (h *heldRestart) Restart() error {
	<-h.letGo
	return errors.New("the next restart is possible in 1m0s")
}

func TestNoControllerNoControl(t *testing.T) {
	broker := startBroker(t, "")
	sub := mqtttest.Subscribe(t, broker.URL(), "edge-infer/#")
	c := testClient(broker.URL())
	start(t, c)
	c.Settings("cam0", Settings{Detect: true})
	sub.WaitLast(t, "edge-infer/gate/cam0/detect/state", "ON")
	sub.Client.Publish("edge-infer/gate/cam0/detect/set", 1, false, "OFF").WaitTimeout(mqtttest.Patience)
	c.Count("cam0", "person", 1)
	sub.WaitLast(t, "edge-infer/gate/cam0/count/person", "1")
	assert.Equal(t, "ON", sub.Last("edge-infer/gate/cam0/detect/state"))
	assert.Empty(t, sub.Messages("edge-infer/gate/error"))
}

func FuzzCommand(f *testing.F) {
	const base = "edge-infer/gate/"
	f.Add(base+"cam0/detect/set", []byte("ON"))
	f.Add(base+"cam0/threshold/set", []byte("1e-1"))
	f.Add(base+"cam0/interval/set", []byte("+7"))
	f.Add(base+"cam0/labels/set", []byte("a,b , c"))
	f.Add(base+"reload/set", []byte("PRESS"))
	f.Add(base+"/set", []byte("x"))
	f.Add(base+"a/b/c/set", []byte("x"))
	f.Add("set", []byte{0xff})
	f.Add(base+"set", []byte("\x00"))
	name := func(level string) (string, bool) { return "camera", level == "cam0" }
	f.Fuzz(func(t *testing.T, to string, payload []byte) {
		c, err := command.Parse(base, to, payload, name)
		if err != nil {
			require.Less(t, len(err.Error()), 400)
			return
		}
		r := &recorder{}
		client := &Client{
			Controller: r, Root: "edge-infer", Device: "gate",
			Link: Link{qos0: newMailboxQueue(), qos1: newMailboxQueue(), events: &spool.Spool{}},
		}
		client.setUp()
		client.remoteControl.load()
		require.NoError(t, client.Execute(c))
		require.Len(t, r.calls, 1)
		require.True(t, c.Threshold >= 0 && c.Threshold <= 1)
		require.True(t, c.Control != command.Interval || c.Interval >= 1 && c.Interval <= command.MaxInterval)
		require.LessOrEqual(t, len(c.Labels), command.MaxLabels)
		if c.Camera == "" {
			require.Contains(t, []string{command.Reload, command.Restart}, c.Control)
		} else {
			require.Equal(t, "camera", c.Camera)
		}
	})
}

func TestHugeMessageIsIgnored(t *testing.T) {
	broker := &embedded.Broker{Address: "127.0.0.1:0", Logger: mqtttest.Discard(), Limits: embedded.Limits{Packet: 16 << 20}}
	require.NoError(t, broker.Open())
	defer broker.Close()
	sub := mqtttest.Subscribe(t, broker.URL(), "edge-infer/gate/cam0/+/state")
	huge := make([]byte, 8<<20)
	sub.Client.Publish("edge-infer/gate/cam0/detect/set", 1, true, huge).WaitTimeout(mqtttest.Patience)
	log := &mqtttest.Journal{}
	r := &recorder{}
	c := testClient(broker.URL())
	c.Controller, c.Logger = r, log.Logger()
	start(t, c)
	c.Settings("cam0", Settings{Detect: true, Threshold: 0.25, Interval: 1})
	sub.WaitLast(t, "edge-infer/gate/cam0/interval/state", "1")
	sub.Client.Publish("edge-infer/gate/cam0/labels/set", 1, false, huge).WaitTimeout(mqtttest.Patience)
	require.Eventually(t, func() bool {
		sub.Client.Publish("edge-infer/gate/cam0/interval/set", 1, false, "3").WaitTimeout(mqtttest.Patience)
		return sub.Last("edge-infer/gate/cam0/interval/state") == "3"
	}, mqtttest.Patience, 20*time.Millisecond)
	assert.True(t, c.Connection().Connected)
	assert.Contains(t, log.String(), "bytes are too large for a command")
	for _, call := range r.all() {
		assert.Equal(t, "interval cam0 3", call)
	}
}

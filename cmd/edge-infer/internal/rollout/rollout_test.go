package rollout

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
	"github.com/edge-infer/edge-infer/mqtt"
	"github.com/edge-infer/edge-infer/mqtt/mqtttest"
	"github.com/edge-infer/edge-infer/mqtt/payload"
	"github.com/edge-infer/edge-infer/mqtt/topic"
)

// simulated is a device that speaks the protocol and installs nothing.
type simulated struct {
	tree   topic.Tree
	client paho.Client
	fails  func(*payload.JobExecution) bool
	took   time.Duration // for an installation
	done   map[string]bool
	begun  atomic.Int32
	repeat sync.Map // newest messages by topic, for a new connection
}

// simulate connects a device. It connects again by itself.
func simulate(t *testing.T, url, name string, fails func(*payload.JobExecution) bool) *simulated {
	d := &simulated{tree: topic.Tree{Root: topic.DefaultRoot, Device: name}, fails: fails, done: map[string]bool{}}
	options := paho.NewClientOptions().AddBroker(url).SetClientID("device-"+name).SetAutoReconnect(true).
		SetMaxReconnectInterval(time.Second).SetBinaryWill(d.tree.Available(), []byte(topic.Offline), 1, true).SetOrderMatters(true).
		SetConnectTimeout(mqtttest.Patience)
	options.SetOnConnectHandler(func(c paho.Client) {
		c.Subscribe(d.tree.NextJob(), 1, func(_ paho.Client, m paho.Message) { d.receive(m.Payload()) })
		status := payload.Status{Version: "1.0.0", Started: time.Now(), Model: "belt"}
		c.Publish(d.tree.Status(), 1, true, status.AppendJSON(nil, name, time.Now(), nil))
		c.Publish(d.tree.Available(), 1, true, topic.Online)
		d.repeat.Range(func(topic, message any) bool {
			c.Publish(topic.(string), 1, true, message)
			return true
		})
	})
	d.client = paho.NewClient(options)
	d.connect(t)
	t.Cleanup(func() { d.client.Disconnect(0) })
	return d
}

func (d *simulated) connect(t *testing.T) {
	token := d.client.Connect()
	require.True(t, token.WaitTimeout(mqtttest.Patience))
	require.NoError(t, token.Error())
}

// off takes the device off the broker as a power cut does, as far as others can see.
func (d *simulated) off() {
	d.client.Publish(d.tree.Available(), 1, true, topic.Offline).WaitTimeout(mqtttest.Patience)
	d.client.Disconnect(100)
}

func (d *simulated) receive(message []byte) {
	next, err := payload.ParseNextJob(message)
	job := next.Execution
	if err != nil || job == nil || d.done[job.ID] {
		return
	}
	d.done[job.ID] = true
	d.begun.Add(1)
	d.report(job.ID, payload.JobUpdate{Status: payload.JobInProgress, Details: payload.JobDetails{Phase: "trial"}})
	end := payload.JobUpdate{Status: payload.JobSucceeded}
	if d.fails(job) {
		end = payload.JobUpdate{Status: payload.JobFailed, Details: payload.JobDetails{Reason: "it finds other objects"}}
	}
	time.AfterFunc(d.took, func() { d.report(job.ID, end) })
}

func (d *simulated) report(job string, update payload.JobUpdate) {
	message := update.AppendJSON(nil, d.tree.Device, time.Now())
	d.repeat.Store(d.tree.Job(job), message)
	d.client.Publish(d.tree.Job(job), 1, true, message)
}

func rollout(url, job string) *Rollout {
	return &Rollout{
		Fleet: Fleet{Access: mqtt.Access{Brokers: []string{url}}, ID: strconv.FormatInt(time.Now().UnixNano(), 36)}, Job: job,
		Document: payload.JobDocument{Operation: payload.UpdateModel, From: "registry.example.org/belt:5"},
		Stages:   []float64{1, 10, 100}, MaxFailed: 5, Patience: mqtttest.Patience,
	}
}

func good(*payload.JobExecution) bool { return false }

// fleetOf simulates many devices at once.
func fleetOf(t *testing.T, url, name string, count int, fails func(*payload.JobExecution) bool) []*simulated {
	all := make([]*simulated, count)
	var ready sync.WaitGroup
	for part := range 20 {
		ready.Go(func() {
			for i := part; i < count; i += 20 {
				all[i] = simulate(t, url, fmt.Sprintf("%s-%04d", name, i), fails)
			}
		})
	}
	ready.Wait()
	return all
}

func begun(all []*simulated) (count int) {
	for _, d := range all {
		count += int(d.begun.Load())
	}
	return count
}

// TestRollOuts: a good bundle reaches all devices. A poisoned one stops after its first stage, and the devices of that keep no job. Devices
// that are off are not waited for, get the job when they are back, and begin it once.
func TestRollOuts(t *testing.T) {
	broker := mqtttest.StartMosquitto(t, "allow_anonymous true")
	const count = 60
	all := fleetOf(t, "tcp://"+broker.Address, "gate", count, func(job *payload.JobExecution) bool { return job.ID == "poisoned" })
	all[7].off()
	result, err := rollout("tcp://"+broker.Address, "poisoned").Run(t.Context())
	require.EqualError(t, err, "1 of 1 devices have failed (100 %, at most 5 % may)")
	assert.Equal(t, count, result.Devices)
	assert.Equal(t, []Reason{{"failed: it finds other objects", 1, result.Reasons[0].Example}}, result.Reasons)
	assert.Equal(t, 1, begun(all))

	result, err = rollout("tcp://"+broker.Address, "good").Run(t.Context())
	require.NoError(t, err)
	want := Result{Version: 1, Job: "good", Devices: count, Given: count, Succeeded: count - 1, Waiting: 1, Reasons: []Reason{}}
	assert.Equal(t, want, *result)
	all[7].connect(t)
	fleet := rollout("tcp://"+broker.Address, "good").Fleet
	require.Eventually(t, func() bool {
		result, err := fleet.Status(t.Context(), "good")
		return err == nil && result.Succeeded == count
	}, mqtttest.Patience, 10*time.Millisecond)
	result, err = rollout("tcp://"+broker.Address, "good").Run(t.Context()) // again
	require.NoError(t, err)
	assert.Equal(t, count, result.Succeeded)
	assert.Equal(t, count+1, begun(all), "each has begun it once")

	list, err := fleet.List(t.Context(), "gate-000[0-2]")
	require.NoError(t, err)
	require.Len(t, list, 3)
	assert.Equal(t, "gate-0001", list[1].Name)
	assert.True(t, list[1].Online)
	assert.Equal(t, "good", list[1].Job)
	assert.Equal(t, payload.JobSucceeded, list[1].Progress.Status)
}

// TestLostDevicesAreWaitedFor: a device that loses its connection by the job may be the first of many.
func TestLostDevicesAreWaitedFor(t *testing.T) {
	broker := mqtttest.StartMosquitto(t, "allow_anonymous true")
	all := fleetOf(t, "tcp://"+broker.Address, "gate", 3, good)
	for _, d := range all {
		d.took = time.Hour
	}
	ended := make(chan *Result, 1)
	r := rollout("tcp://"+broker.Address, "one")
	go func() {
		result, _ := r.Run(t.Context())
		ended <- result
	}()
	var first *simulated
	require.Eventually(t, func() bool {
		for _, d := range all {
			if d.begun.Load() > 0 {
				first = d
			}
		}
		return first != nil
	}, mqtttest.Patience, time.Millisecond)
	first.off()
	select {
	case <-ended:
		require.Fail(t, "the next stage has begun")
	case <-time.After(3 * time.Second): // of three looks
	}
	first.connect(t)
	first.report("one", payload.JobUpdate{Status: payload.JobFailed})
	result := <-ended
	assert.Equal(t, 1, result.Failed)
	assert.Equal(t, 1, begun(all))

	second := rollout("tcp://"+broker.Address, "two")
	second.Absence = time.Nanosecond
	go func() {
		result, _ := second.Run(t.Context())
		ended <- result
	}()
	require.Eventually(t, func() bool { return begun(all) > 1 }, mqtttest.Patience, time.Millisecond)
	for _, d := range all {
		d.off()
	}
	assert.Equal(t, 3, (<-ended).Waiting)
}

// TestInterruptedRollOuts: the job is taken back from devices that have not ended it, after an interruption, after abort, and when devices
// are late.
func TestInterruptedRollOuts(t *testing.T) {
	broker := mqtttest.StartMosquitto(t, "allow_anonymous true")
	all := fleetOf(t, "tcp://"+broker.Address, "gate", 4, good)
	for _, d := range all {
		d.took = time.Hour
	}
	ctx, cancel := context.WithCancel(t.Context())
	r := rollout("tcp://"+broker.Address, "one")
	r.Stages = []float64{100}
	go func() {
		for begun(all) < len(all) {
			time.Sleep(time.Millisecond)
		}
		cancel()
	}()
	result, err := r.Run(ctx)
	require.ErrorIs(t, err, context.Canceled)
	assert.Equal(t, 4, result.Waiting)
	list, err := r.List(t.Context(), "")
	require.NoError(t, err)
	for i := range list {
		assert.Empty(t, list[i].Job)
	}

	late := rollout("tcp://"+broker.Address, "two")
	late.Stages, late.Patience = []float64{100}, time.Millisecond
	result, err = late.Run(t.Context())
	require.ErrorContains(t, err, "4 of 4 devices have failed")
	assert.Equal(t, "late: it has not ended the job in time", result.Reasons[0].Text)

	all[0].off()
	waits := rollout("tcp://"+broker.Address, "three")
	waits.Devices, waits.Stages = "gate-0000", []float64{100}
	result, err = waits.Run(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 1, result.Waiting)
	withdrawn, err := waits.Abort(t.Context(), "three")
	require.NoError(t, err)
	assert.Equal(t, 1, withdrawn)
	begun := all[0].begun.Load()
	all[0].connect(t)
	_, err = waits.List(t.Context(), "")
	require.NoError(t, err)
	assert.Equal(t, begun, all[0].begun.Load())
}

func TestParametersAreChecked(t *testing.T) {
	for want, change := range map[string]func(*Rollout){
		"end with 100":                    func(r *Rollout) { r.Stages = []float64{1, 50} },
		"stages []":                       func(r *Rollout) { r.Stages = nil },
		"share 100 of failures":           func(r *Rollout) { r.MaxFailed = 100 },
		"devices \"[\"":                   func(r *Rollout) { r.Devices = "[" },
		"jobId must consist of":           func(r *Rollout) { r.Job = "a/b" },
		"jobDocument.from is empty":       func(r *Rollout) { r.Document.From = "" },
		"settings or signature is empty":  func(r *Rollout) { r.Document.Operation = payload.UpdateSettings },
		"operation \"format\" is neither": func(r *Rollout) { r.Document.Operation = "format" },
	} {
		r := rollout("", "good")
		require.NoError(t, r.Check())
		change(r)
		require.ErrorContains(t, r.Check(), want)
	}
	_, err := rollout("tcp://127.0.0.1:1", "good").Run(t.Context())
	require.ErrorContains(t, err, "tcp://127.0.0.1:1")
}

// FuzzReceive: whatever is on the broker changes nothing but its own device.
func FuzzReceive(f *testing.F) {
	f.Add("edge-infer/gate/status", []byte(`{"version": "1", "update": {"version": 4}}`))
	f.Add("edge-infer/gate/jobs/notify-next", []byte(`{"execution": {"jobId": "a"}}`))
	f.Add("edge-infer/gate/jobs/a/update", []byte(`{"status": "FAILED"}`))
	f.Fuzz(func(t *testing.T, name string, message []byte) {
		d := newDevices()
		d.receive(name, message)
		d.receive(name, nil)
		for _, one := range d.known("") {
			_, err := json.Marshal(one)
			require.NoError(t, err)
		}
	})
}

// TestManyDevices is run by hand with EDGE_INFER_DEVICES=5000: a good and a poisoned roll-out, while 30 % of the devices have each of their
// connections cut at random within a minute, and others are off in between.
func TestManyDevices(t *testing.T) {
	text := os.Getenv("EDGE_INFER_DEVICES")
	if text == "" {
		t.Skip("EDGE_INFER_DEVICES is not set")
	}
	count, err := strconv.Atoi(text)
	require.NoError(t, err)
	broker := mqtttest.StartMosquitto(t, "allow_anonymous true")
	cuts := programtest.NewCuts(t, broker.Address, 1, time.Minute)
	poisoned := func(job *payload.JobExecution) bool { return job.ID == "poisoned" }
	all := append(fleetOf(t, "tcp://"+broker.Address, "gate", count-count*3/10, poisoned),
		fleetOf(t, "tcp://"+cuts.Address, "door", count*3/10, poisoned)...)
	for _, d := range all {
		d.took = time.Duration(rand.IntN(3000)) * time.Millisecond
	}
	stop := make(chan struct{})
	var rest sync.WaitGroup
	for part := range 10 {
		rest.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(time.Duration(rand.IntN(200)) * time.Millisecond):
					d := all[part+10*rand.IntN(count/10)]
					d.off()
					time.Sleep(time.Duration(rand.IntN(2000)) * time.Millisecond)
					d.connect(t)
				}
			}
		})
	}
	roll := func(job string) (*Result, error) {
		r := rollout("tcp://"+broker.Address, job)
		r.Patience = 10 * time.Minute
		return r.Run(t.Context())
	}
	start := time.Now()
	result, err := roll("poisoned")
	t.Logf("poisoned: %v, %+v, %d devices have begun, %v", time.Since(start), result, begun(all), err)
	require.Error(t, err)
	assert.LessOrEqual(t, begun(all), (count+99)/100)
	start = time.Now()
	before := begun(all)
	result, err = roll("good")
	t.Logf("good: %v, %+v", time.Since(start), result)
	require.NoError(t, err)
	close(stop)
	rest.Wait()
	fleet := rollout("tcp://"+broker.Address, "good").Fleet
	require.Eventually(t, func() bool {
		result, err = fleet.Status(t.Context(), "good")
		return err == nil && result.Succeeded == count
	}, 5*time.Minute, time.Second, "%+v", result)
	assert.Equal(t, count, begun(all)-before, "each has begun it once")
	t.Logf("%d of %d connections were cut; %d bytes", cuts.Cut.Load(), cuts.Connections.Load(), cuts.Bytes.Load())
}

// Package rollout gives jobs to many devices over their broker: in stages, and not to the next one when too many have failed.
package rollout

import (
	"context"
	"encoding/json"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/edge-infer/edge-infer/mqtt"
	"github.com/edge-infer/edge-infer/mqtt/payload"
	"github.com/edge-infer/edge-infer/mqtt/topic"
)

// Device is a device as its broker knows it.
type Device struct {
	Name    string `json:"name"`
	Online  bool   `json:"online"`
	Program string `json:"program,omitempty"` // version
	Model   string `json:"model,omitempty"`
	// Update is what it says of its model; nil if it says nothing.
	Update *payload.Update `json:"update,omitempty"`
	// Job is the job that it is given, empty for none, and Progress what it has reported of it last.
	Job      string             `json:"job,omitempty"`
	Progress *payload.JobUpdate `json:"progress,omitempty"`

	updates map[string]*payload.JobUpdate // by job
	gone    time.Time                     // when its connection was seen to end, zero for never
}

// devices collects what devices publish.
type devices struct {
	root string

	mu      sync.Mutex
	all     map[string]*Device
	newest  time.Time     // when the newest device was heard of
	changed chan struct{} // holds a token after a message
}

func newDevices() *devices {
	return &devices{root: topic.DefaultRoot + "/", all: map[string]*Device{}, changed: make(chan struct{}, 1)}
}

// filters are those of the topics that receive reads.
func (d *devices) filters() []string {
	return []string{d.root + "+/status", d.root + "+/available", d.root + "+/jobs/+/update", d.root + "+/jobs/notify-next"}
}

// receive takes a message. What cannot be read is not of a device of this program, and changes nothing.
func (d *devices) receive(name string, message []byte) {
	levels := strings.Split(strings.TrimPrefix(name, d.root), "/")
	d.mu.Lock()
	defer d.mu.Unlock()
	select {
	case d.changed <- struct{}{}:
	default:
	}
	one := d.all[levels[0]]
	if one == nil {
		one = &Device{Name: levels[0], updates: map[string]*payload.JobUpdate{}}
		d.all[levels[0]] = one
		d.newest = time.Now()
	}
	switch what := strings.Join(levels[1:], "/"); {
	case what == "available":
		was := one.Online
		one.Online = string(message) == topic.Online
		if was && !one.Online {
			one.gone = time.Now()
		}
	case what == "status":
		one.status(message)
	case what == "jobs/notify-next":
		one.Job = ""
		next, _ := payload.ParseNextJob(message)
		if next.Execution != nil {
			one.Job = next.Execution.ID
		}
	case len(levels) == 4:
		one.report(levels[2], message)
	}
}

// status takes the status of a device.
func (d *Device) status(message []byte) {
	var status struct {
		Version, Model string
		Update         *payload.Update
	}
	if json.Unmarshal(message, &status) == nil {
		d.Program, d.Model, d.Update = status.Version, status.Model, status.Update
	}
}

// report takes what a device says of a job.
func (d *Device) report(job string, message []byte) {
	var update payload.JobUpdate
	delete(d.updates, job)
	if len(message) > 0 && json.Unmarshal(message, &update) == nil {
		d.updates[job] = &update
	}
}

// known returns the devices of this program, in the order of their names, whose names match a pattern; empty for all.
func (d *devices) known(pattern string) (all []Device) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, one := range d.all {
		matches := pattern == ""
		if !matches {
			matches, _ = path.Match(pattern, one.Name) // the pattern has been checked
		}
		if matches && one.Program != "" {
			shown := *one
			shown.Progress = one.updates[one.Job]
			all = append(all, shown)
		}
	}
	slices.SortFunc(all, func(a, b Device) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// silence is how long no further device is heard of when all that a broker retains has been received.
const silence = time.Second

// settled waits until the retained messages have been received.
func (d *devices) settled(ctx context.Context) error {
	d.mu.Lock()
	d.newest = time.Now()
	d.mu.Unlock()
	for {
		d.mu.Lock()
		left := silence - time.Since(d.newest)
		d.mu.Unlock()
		if left <= 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(left):
		}
	}
}

// Fleet is the devices on a broker.
type Fleet struct {
	Access mqtt.Access
	// ID makes the client's id on the broker unique.
	ID string
}

// open connects and receives what devices have retained.
func (f *Fleet) open(ctx context.Context) (*mqtt.Peer, *devices, error) {
	d := newDevices()
	peer, err := f.Access.Connect(ctx, "edge-infer-fleet-"+f.ID, d.filters(), d.receive)
	if err != nil {
		return nil, nil, err
	}
	if err := d.settled(ctx); err != nil {
		peer.Close()
		return nil, nil, err
	}
	return peer, d, nil
}

// List returns the devices whose names match a pattern as of path.Match, empty for all, in the order of their names.
func (f *Fleet) List(ctx context.Context, pattern string) ([]Device, error) {
	peer, d, err := f.open(ctx)
	if err != nil {
		return nil, err
	}
	defer peer.Close()
	return d.known(pattern), nil
}

// Abort withdraws a job from the devices that have not ended it, and returns their number.
func (f *Fleet) Abort(ctx context.Context, job string) (withdrawn int, err error) {
	peer, d, err := f.open(ctx)
	if err != nil {
		return 0, err
	}
	defer peer.Close()
	return withdraw(ctx, peer, d, job)
}

// withdraw removes a job from the devices that have not ended it.
func withdraw(ctx context.Context, peer *mqtt.Peer, d *devices, job string) (withdrawn int, err error) {
	for _, one := range d.known("") {
		if one.Job != job || one.Progress != nil && one.Progress.Status.Final() {
			continue
		}
		if err := peer.Publish(ctx, nextJob(one.Name), nil); err != nil {
			return withdrawn, err
		}
		withdrawn++
	}
	return withdrawn, nil
}

func nextJob(device string) string {
	return topic.Tree{Root: topic.DefaultRoot, Device: device}.NextJob()
}

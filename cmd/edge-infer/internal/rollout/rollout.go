package rollout

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/progress"
	"github.com/edge-infer/edge-infer/mqtt"
	"github.com/edge-infer/edge-infer/mqtt/payload"
)

// Rollout gives one job to devices in stages. Calling Run again with the same job goes on where it has ended.
type Rollout struct {
	Fleet
	Job      string
	Document payload.JobDocument
	Devices  string    // pattern of their names as of path.Match; empty for all
	Stages   []float64 // shares of the devices in percent, ascending; the last is 100
	// MaxFailed is the largest share, in percent, of the devices with the job that may fail.
	MaxFailed float64
	// Patience is how long a stage waits for devices that are connected. Those that are not have time, and count when they are back.
	Patience time.Duration
	// Absence is how long a stage waits for devices that lose their connection meanwhile, which may be what the job does to them;
	// DefaultAbsence if 0.
	Absence  time.Duration
	Progress progress.Reporter
}

// DefaultAbsence is longer than the usual trial, after which a device goes back if it has lost its connection by the job.
const DefaultAbsence = 15 * time.Minute

// Result is how a roll-out has ended.
type Result struct {
	Version   int      `json:"v"`
	Job       string   `json:"job"`
	Devices   int      `json:"devices"`
	Given     int      `json:"given"` // that have the job
	Succeeded int      `json:"succeeded"`
	Failed    int      `json:"failed"` // failed, rejected, or connected and late
	Waiting   int      `json:"waiting"`
	Stopped   string   `json:"stopped,omitempty"` // why there was no further stage; empty if there was
	Reasons   []Reason `json:"reasons"`           // of failures, the most frequent first
}

// Reason is why devices have failed.
type Reason struct {
	Text    string `json:"text"`
	Devices int    `json:"devices"`
	Example string `json:"example"` // name of one
}

// Print writes the result as text.
func (r *Result) Print(out io.Writer) error {
	fmt.Fprintf(out, "%s: %d of %d devices have it, %d succeeded, %d failed, %d waiting\n", r.Job, r.Given, r.Devices, r.Succeeded, r.Failed,
		r.Waiting)
	for _, reason := range r.Reasons {
		fmt.Fprintf(out, "  %d: %s (%s)\n", reason.Devices, reason.Text, reason.Example)
	}
	if r.Stopped != "" {
		fmt.Fprintf(out, "stopped: %s\n", r.Stopped)
	}
	return nil
}

// Check validates the parameters.
func (r *Rollout) Check() error {
	if _, err := path.Match(r.Devices, ""); err != nil {
		return fmt.Errorf("devices %q: %w (such as gate-*)", r.Devices, err)
	}
	if len(r.Stages) == 0 || r.Stages[len(r.Stages)-1] != 100 || r.Stages[0] <= 0 || !slices.IsSorted(r.Stages) {
		return fmt.Errorf("stages %v: shares must be over 0, ascend, and end with 100", r.Stages)
	}
	if !(r.MaxFailed >= 0 && r.MaxFailed < 100) {
		return fmt.Errorf("share %v of failures: it must be 0 or more and under 100", r.MaxFailed)
	}
	message, err := json.Marshal(r.message())
	if err == nil {
		_, err = payload.ParseNextJob(message)
	}
	return err
}

func (r *Rollout) message() payload.NextJob {
	return payload.NextJob{Execution: &payload.JobExecution{ID: r.Job, Status: payload.JobQueued, Document: r.Document}}
}

// Run gives the job to one stage after the other. If too many devices fail, or ctx ends, those that have not ended the job lose it again;
// what was installed stays. The result is valid also with an error.
func (r *Rollout) Run(ctx context.Context) (*Result, error) {
	result := &Result{Version: 1, Job: r.Job, Reasons: []Reason{}}
	peer, d, err := r.open(ctx)
	if err != nil {
		return result, err
	}
	defer peer.Close()
	order := r.order(d.known(r.Devices))
	result.Devices = len(order)
	if len(order) == 0 {
		return result, errors.New("no device with such a name is known to the broker (edge-infer fleet list shows them)")
	}
	message, err := json.Marshal(r.message())
	if err != nil {
		return result, err
	}
	given := 0
	for _, share := range r.Stages {
		until := min(len(order), int(math.Ceil(share/100*float64(len(order)))))
		for ; given < until && err == nil; given++ {
			err = r.give(ctx, peer, d, order[given], message)
		}
		if err != nil {
			r.count(d, order[:given], false, result)
		} else {
			err = r.stage(ctx, d, order[:given], result)
		}
		if err != nil {
			result.Stopped = err.Error()
			_, failed := withdraw(context.WithoutCancel(ctx), peer, d, r.Job)
			return result, errors.Join(err, failed)
		}
	}
	return result, nil
}

// order returns the names of devices in the order in which they get the job: the same for the same job, another one for another.
func (r *Rollout) order(all []Device) (names []string) {
	place := func(name string) uint64 {
		sum := fnv.New64a()
		_, _ = io.WriteString(sum, r.Job+"/"+name)
		return sum.Sum64()
	}
	for i := range all {
		names = append(names, all[i].Name)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(place(a), place(b)), strings.Compare(a, b)) })
	return names
}

// give gives the job to a device, unless it has it.
func (r *Rollout) give(ctx context.Context, peer *mqtt.Peer, d *devices, name string, message []byte) error {
	d.mu.Lock()
	has := d.all[name].Job == r.Job
	d.all[name].Job = r.Job
	d.mu.Unlock()
	if has {
		return nil
	}
	return peer.Publish(ctx, nextJob(name), message)
}

// stage waits until every device with the job that is connected, or was until lately, has ended it. It returns why there is no further
// stage.
func (r *Rollout) stage(ctx context.Context, d *devices, given []string, result *Result) error {
	step := r.Progress.Begin(fmt.Sprintf("devices have ended %s", r.Job))
	defer step.Close()
	late := time.After(r.Patience)
	ticker := time.NewTicker(time.Second) // availability is retained, and changes by itself
	defer ticker.Stop()
	over := false
	for {
		online := r.count(d, given, over, result)
		step.Count(result.Succeeded+result.Failed, result.Given)
		if share := 100 * float64(result.Failed) / float64(result.Given); result.Failed > 0 && share > r.MaxFailed {
			return fmt.Errorf("%d of %d devices have failed (%.3g %%, at most %.3g %% may)", result.Failed, result.Given, share, r.MaxFailed)
		}
		if online == 0 || over {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-late:
			over = true
		case <-d.changed:
		case <-ticker.C:
		}
	}
}

// count counts the devices with the job by what they have reported. It returns how many are connected, or were until
// lately, and have not ended it; if the time of the stage is over, those that are connected have failed.
func (r *Rollout) count(d *devices, given []string, over bool, result *Result) (online int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	result.Given, result.Succeeded = len(given), 0
	result.Failed, result.Waiting = 0, 0
	reasons := map[string]*Reason{}
	failed := func(name, text string) {
		result.Failed++
		if reasons[text] == nil {
			reasons[text] = &Reason{Text: text, Example: name}
		}
		reasons[text].Devices++
	}
	for _, name := range given {
		one := d.all[name]
		reported := one.updates[r.Job]
		switch {
		case reported != nil && reported.Status == payload.JobSucceeded:
			result.Succeeded++
		case reported != nil && reported.Status.Final():
			failed(name, strings.ToLower(string(reported.Status))+": "+reported.Details.Reason)
		case one.Online && over:
			failed(name, "late: it has not ended the job in time")
		default:
			result.Waiting++
			if one.Online || time.Since(one.gone) < cmp.Or(r.Absence, DefaultAbsence) {
				online++
			}
		}
	}
	result.Reasons = result.Reasons[:0]
	for _, reason := range reasons {
		result.Reasons = append(result.Reasons, *reason)
	}
	slices.SortFunc(result.Reasons, func(a, b Reason) int {
		return cmp.Or(cmp.Compare(b.Devices, a.Devices), strings.Compare(a.Text, b.Text))
	})
	return online
}

// Status returns how far devices are with a job that they have been given.
func (f *Fleet) Status(ctx context.Context, job string) (*Result, error) {
	peer, d, err := f.open(ctx)
	if err != nil {
		return nil, err
	}
	defer peer.Close()
	r := &Rollout{Job: job}
	result := &Result{Version: 1, Job: job, Reasons: []Reason{}}
	var given []string
	for _, one := range d.known("") {
		result.Devices++
		if one.Job == job {
			given = append(given, one.Name)
		}
	}
	r.count(d, given, false, result)
	return result, nil
}

// Package history stores counts over time: per hour the objects that appeared, entered zones and crossed lines and their speed, and per day
// a heat map of their positions. There is one file per camera and day.
package history

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/zone"
)

// saveInterval is the interval between writes: a power cut loses at most this much, and flash memory wears little.
const saveInterval = 5 * time.Minute

// maxStep is the longest time that one frame represents in the heat map; after a longer gap the positions in between are unknown.
const maxStep = time.Second

// Recorder counts. Set the fields, have it be a sink, and call Run. Frame belongs to the frame goroutine, everything else may be called
// from any.
type Recorder struct {
	Directory string // empty: counts are kept for the run only, in memory
	Days      int    // that are kept on disk, this one included
	Logger    *slog.Logger

	files sync.Mutex // held while files are read and written

	mu       sync.Mutex
	cameras  map[string]*camera
	finished []*Day // of days that are over, on their way to the disk
}

// camera holds the counts of one camera since the last save.
type camera struct {
	day     *Day
	date    int // of now, year and day of the year
	last    time.Time
	changed bool
	totals  *Counts // since the start
}

var _ pipeline.Sink = (*Recorder)(nil)

// Frame implements pipeline.Sink. It allocates when a name is new and when a day or five minutes are over.
func (r *Recorder) Frame(in *pipeline.Result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	local := in.Time.Local()
	c := r.camera(in.Camera, local)
	if in.Frame != nil {
		if step := local.Sub(c.last); step > 0 && step <= maxStep && len(in.Detections) > 0 {
			c.addHeat(in, float32(step.Seconds()))
		}
		c.last = local
	}
	if in.Events == nil || in.Tracker == nil {
		return
	}
	for i := range in.Events.Events {
		c.count(&in.Events.Events[i], in, local.Hour())
	}
}

// camera returns a camera's counts of the day. The lock is held.
func (r *Recorder) camera(name string, local time.Time) *camera {
	if r.cameras == nil {
		r.cameras = map[string]*camera{}
	}
	c := r.cameras[name]
	if c == nil {
		c = &camera{totals: newCounts()}
		r.cameras[name] = c
	}
	if date := 1000*local.Year() + local.YearDay(); c.day == nil || c.date != date {
		if c.day != nil && c.changed {
			r.finished = append(r.finished, c.day)
		}
		c.day, c.date, c.changed = newDay(name, local.Format(dayLayout)), date, false
	}
	return c
}

// addHeat adds the time of one frame where its objects stand.
func (c *camera) addHeat(in *pipeline.Result, seconds float32) {
	for i := range in.Detections {
		box := &in.Detections[i].Box
		if box.X2 <= box.X1 {
			continue // a class of the whole image
		}
		x, y := int(float32(Columns)*(box.X1+box.X2)/2/float32(in.Width)), int(float32(Rows)*box.Y2/float32(in.Height))
		c.day.Heat[min(max(y, 0), Rows-1)*Columns+min(max(x, 0), Columns-1)] += seconds
	}
	c.changed = true
}

// count adds an event to the hour and to the totals.
func (c *camera) count(e *zone.Event, in *pipeline.Result, hour int) {
	if e.Kind == zone.Update || e.Kind == zone.Loiter {
		return
	}
	c.changed = true
	for _, to := range [...]*Counts{c.day.hour(hour), c.totals} {
		switch e.Kind {
		case zone.New:
			to.Objects[postprocess.Label(in.Labels, e.Object.Class)]++
		case zone.Enter:
			entry(to.Zones, in.Tracker.Config.Zones[e.Zone].Name).Entered++
		case zone.Leave:
			z := entry(to.Zones, in.Tracker.Config.Zones[e.Zone].Name)
			z.Visits++
			z.Dwell += e.Dwell.Seconds()
		case zone.Cross:
			l := entry(to.Lines, in.Tracker.Config.Lines[e.Line].Name)
			if e.Direction == zone.In {
				l.In++
			} else {
				l.Out++
			}
		case zone.End:
			if in.Tracker.Config.Ground != nil && e.Object.Distance > 0 {
				to.Way.Objects++
				to.Way.Distance += e.Object.Distance
				to.Way.Time += e.Object.Duration().Seconds()
			}
		}
	}
}

// Totals are each camera's counts since the start.
func (r *Recorder) Totals() map[string]*Counts {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := map[string]*Counts{}
	for name, c := range r.cameras {
		all[name] = newCounts()
		all[name].add(c.totals)
	}
	return all
}

// Run saves the counts every few minutes, and when ctx ends.
func (r *Recorder) Run(ctx context.Context) error {
	if r.Directory == "" {
		return nil
	}
	ticker := time.NewTicker(saveInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			r.save()
			return nil
		case <-ticker.C:
			r.save()
		}
	}
}

// save adds the counts since the last save to the files. What cannot be written stays in memory until the next save.
func (r *Recorder) save() {
	r.files.Lock()
	defer r.files.Unlock()
	r.mu.Lock()
	parts := r.finished
	r.finished = nil
	for _, c := range r.cameras {
		if c.changed {
			parts = append(parts, c.day)
			c.day, c.changed = newDay(c.day.Camera, c.day.Day), false
		}
	}
	r.mu.Unlock()
	for i, part := range parts {
		if err := r.write(part); err != nil {
			r.Logger.Warn("what was counted cannot be saved", "error", err)
			r.mu.Lock()
			r.finished = append(r.finished, parts[i:]...)
			r.mu.Unlock()
			return
		}
	}
}

// Day returns the counts of a camera on a day such as 2026-11-22; of the newest day if empty. days lists the stored days, oldest first. An
// unknown day is empty.
func (r *Recorder) Day(camera, day string) (found *Day, days []string, err error) {
	r.files.Lock()
	defer r.files.Unlock()
	if days, err = r.days(camera); err != nil {
		return nil, nil, err
	}
	parts := r.unsaved(camera)
	for _, part := range parts {
		if !slices.Contains(days, part.Day) {
			days = append(days, part.Day)
		}
	}
	slices.Sort(days)
	if day == "" && len(days) > 0 {
		day = days[len(days)-1]
	}
	if found, err = r.read(camera, day); err != nil {
		return nil, nil, err
	}
	for _, part := range parts {
		if part.Day == day {
			found.add(part)
		}
	}
	return found, days, nil
}

// unsaved are copies of what no file has of a camera.
func (r *Recorder) unsaved(camera string) (parts []*Day) {
	r.mu.Lock()
	defer r.mu.Unlock()
	keep := func(part *Day) {
		same := newDay(part.Camera, part.Day)
		same.add(part)
		parts = append(parts, same)
	}
	for _, part := range r.finished {
		if part.Camera == camera {
			keep(part)
		}
	}
	if c := r.cameras[camera]; c != nil {
		keep(c.day)
	}
	return parts
}

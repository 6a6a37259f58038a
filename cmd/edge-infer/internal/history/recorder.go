// Package history counts over time: per minute the objects that appeared, entered zones and crossed lines and their speed, and per day a
// heat map of their positions.
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

// closeLimit bounds how long the end of Run waits for the disk.
const closeLimit = 2 * time.Second

// maxStep is the longest time that one frame represents in the heat map; after a longer gap the positions in between are unknown.
const maxStep = time.Second

// memoryDays is the number of days that are kept in memory while they cannot be stored, this one included.
const memoryDays = 2

// Store keeps counts. Its methods are called from any goroutine and may wait for the disk.
type Store interface {
	// AddCounts adds to what is stored, all or nothing.
	AddCounts(ctx context.Context, minutes []Minute, heat []DayHeat) error
	// Day returns what is stored of a camera's day, and the days that are stored, oldest first.
	Day(ctx context.Context, camera, day string) (*Day, []string, error)
}

// Recorder counts. Set the fields, have it be a sink, and call Run. Frame belongs to the frame goroutine, everything else may be called
// from any.
type Recorder struct {
	Store  Store // nil: counts are kept in memory, for two days
	Logger *slog.Logger

	saving sync.Mutex // held while counts are on their way between memory and the store

	mu      sync.Mutex
	cameras map[string]*camera
}

// camera holds the counts of one camera since the last save.
type camera struct {
	minutes map[int64]*Counts // by minute since 1970
	heat    map[string]*Heat  // by day
	totals  *Counts           // since the start
	last    time.Time

	// The ones of now.
	minute int64
	counts *Counts
	date   int // year and day of the year
	today  *Heat
}

var _ pipeline.Sink = (*Recorder)(nil)

// Frame implements pipeline.Sink. It allocates when a name is new and when a minute is over in which something was counted.
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
		c.count(&in.Events.Events[i], in)
	}
}

// camera returns a camera's counts, with the heat map of the day. The lock is held.
func (r *Recorder) camera(name string, local time.Time) *camera {
	if r.cameras == nil {
		r.cameras = map[string]*camera{}
	}
	c := r.cameras[name]
	if c == nil {
		c = &camera{minutes: map[int64]*Counts{}, heat: map[string]*Heat{}, totals: NewCounts()}
		r.cameras[name] = c
	}
	if date := 1000*local.Year() + local.YearDay(); c.today == nil || c.date != date {
		c.date = date
		c.today = Entry(c.heat, DayOf(local))
		c.forget(local)
	}
	return c
}

// forget drops what could not be stored for too long.
func (c *camera) forget(local time.Time) {
	oldest := DayOf(local.AddDate(0, 0, 1-memoryDays))
	for day := range c.heat {
		if day < oldest {
			delete(c.heat, day)
		}
	}
	for minute := range c.minutes {
		if DayOf(time.Unix(60*minute, 0)) < oldest {
			delete(c.minutes, minute)
		}
	}
}

// at returns the counts of a time's minute.
func (c *camera) at(t time.Time) *Counts {
	if minute := t.Unix() / 60; c.counts == nil || c.minute != minute {
		c.minute = minute
		c.counts = c.minutes[minute]
		if c.counts == nil {
			c.counts = NewCounts()
			c.minutes[minute] = c.counts
		}
	}
	return c.counts
}

// addHeat adds the time of one frame where its objects stand.
func (c *camera) addHeat(in *pipeline.Result, seconds float32) {
	for i := range in.Detections {
		box := &in.Detections[i].Box
		if box.X2 <= box.X1 {
			continue // a class of the whole image
		}
		x, y := int(float32(Columns)*(box.X1+box.X2)/2/float32(in.Width)), int(float32(Rows)*box.Y2/float32(in.Height))
		c.today[min(max(y, 0), Rows-1)*Columns+min(max(x, 0), Columns-1)] += seconds
	}
}

// count adds an event to the minute and to the totals.
func (c *camera) count(e *zone.Event, in *pipeline.Result) {
	if e.Kind == zone.Update || e.Kind == zone.Loiter {
		return
	}
	for _, to := range [...]*Counts{c.at(in.Time), c.totals} {
		switch e.Kind {
		case zone.New:
			to.Objects[postprocess.Label(in.Labels, e.Object.Class)]++
		case zone.Enter:
			Entry(to.Zones, in.Tracker.Config.Zones[e.Zone].Name).Entered++
		case zone.Leave:
			z := Entry(to.Zones, in.Tracker.Config.Zones[e.Zone].Name)
			z.Visits++
			z.Dwell += e.Dwell.Seconds()
		case zone.Cross:
			l := Entry(to.Lines, in.Tracker.Config.Lines[e.Line].Name)
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
		all[name] = NewCounts()
		all[name].Add(c.totals)
	}
	return all
}

// Run saves the counts every few minutes, and when ctx ends.
func (r *Recorder) Run(ctx context.Context) error {
	if r.Store == nil {
		return nil
	}
	ticker := time.NewTicker(saveInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeLimit)
			r.save(last)
			cancel()
			return nil
		case <-ticker.C:
			r.save(ctx)
		}
	}
}

// save adds the counts since the last save to the store. What cannot be stored stays in memory until the next save.
func (r *Recorder) save(ctx context.Context) {
	r.saving.Lock()
	defer r.saving.Unlock()
	minutes, heat := r.take()
	if len(minutes)+len(heat) == 0 {
		return
	}
	if err := r.Store.AddCounts(ctx, minutes, heat); err != nil {
		r.Logger.Warn("counts not stored, they are kept in memory for now", "error", err)
		r.putBack(minutes, heat)
	}
}

// take removes the counts from memory and returns them.
func (r *Recorder) take() (minutes []Minute, heat []DayHeat) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, c := range r.cameras {
		days := map[string]bool{}
		for minute, counts := range c.minutes {
			minutes = append(minutes, Minute{name, minute, counts})
			days[DayOf(time.Unix(60*minute, 0))] = true
		}
		for day, part := range c.heat {
			if days[day] || *part != (Heat{}) {
				heat = append(heat, DayHeat{name, day, part})
			}
		}
		c.minutes, c.heat = map[int64]*Counts{}, map[string]*Heat{}
		c.counts, c.today = nil, nil
	}
	return minutes, heat
}

// putBack adds counts to those in memory.
func (r *Recorder) putBack(minutes []Minute, heat []DayHeat) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range minutes {
		c := r.cameras[m.Camera]
		if newer := c.minutes[m.Minute]; newer != nil {
			newer.Add(m.Counts)
		} else {
			c.minutes[m.Minute] = m.Counts
		}
	}
	for _, part := range heat {
		Entry(r.cameras[part.Camera].heat, part.Day).Add(part.Heat)
	}
}

// Day returns the counts of a camera on a day such as 2026-11-22; of the newest day if empty. days lists the known days, oldest first. An
// unknown day is empty.
func (r *Recorder) Day(ctx context.Context, camera, day string) (found *Day, days []string, err error) {
	r.saving.Lock()
	defer r.saving.Unlock()
	if day == "" {
		day = r.newest(camera)
	}
	found = NewDay(camera, day)
	if r.Store != nil {
		if found, days, err = r.Store.Day(ctx, camera, day); err != nil {
			return nil, nil, err
		}
		if day == "" && len(days) > 0 {
			day = days[len(days)-1]
			if found, days, err = r.Store.Day(ctx, camera, day); err != nil {
				return nil, nil, err
			}
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.cameras[camera]
	if c == nil {
		return found, days, nil
	}
	for minute, counts := range c.minutes {
		at := time.Unix(60*minute, 0).Local()
		if DayOf(at) == day {
			found.Hour(at.Hour()).Add(counts)
		}
	}
	for known, part := range c.heat {
		if known == day {
			found.Heat.Add(part)
		}
		if !slices.Contains(days, known) {
			days = append(days, known)
		}
	}
	slices.Sort(days)
	return found, days, nil
}

// newest returns the newest day in memory; empty if there is none.
func (r *Recorder) newest(camera string) (day string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.cameras[camera]; c != nil {
		for known := range c.heat {
			day = max(day, known)
		}
	}
	return day
}

package record

import (
	"context"
	"errors"
	"math"
	"path"
	"slices"
	"time"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/mp4"
)

const (
	// retryPause is the time before writing is tried again after an error.
	retryPause = 5 * time.Second
	// poll is how often a recording without units checks whether it is over.
	poll = 250 * time.Millisecond
	// lateness is how much later than its time a unit may arrive.
	lateness = time.Second
	// fragmentLength is the length of a fragment. With the frame that ends it and the write, less than a second of video is not in the file.
	fragmentLength = 700 * time.Millisecond
	// clockJump is the change of the time of day that begins a new file.
	clockJump = 2 * time.Second
)

// recording is one stretch of video: around overlapping events, usually a single file, or continuous. One of the camera's goroutines uses
// it.
type recording struct {
	*camera
	condition  *condition
	continuous bool

	events    []string // all of them; none if it is continuous
	requested int64    // when it should begin, CLOCK_MONOTONIC
	video     *mp4.Video
	writer    *writer // nil between files
	offset    int64   // of the time of day to CLOCK_MONOTONIC when the file began
	last      int64   // Received of the newest unit that was added; 0 before
	recorded  bool    // a clip with video exists
	failed    bool    // the last attempt has failed
}

// errOver ends a recording whose time is up.
var errOver = errors.New("recorded to the end")

// record records the events that wait, and those that come meanwhile.
func (c *camera) record(ctx context.Context) {
	begin, events := c.take()
	if begin == 0 {
		return
	}
	settings := c.recorder.current()
	if pause := settings.Cooldown; pause > 0 && c.lastEnd > 0 && begin < c.lastEnd+int64(pause) {
		c.recorder.suppressed.Add(uint64(len(events)))
		return
	}
	r := &recording{camera: c, condition: &c.clips, events: events, requested: begin - int64(settings.Before)}
	r.run(ctx)
	c.lastEnd = c.recorder.now()
}

// run records to the end.
func (r *recording) run(ctx context.Context) {
	var ring *capture.Ring
	for {
		ended := ring
		for ring = r.ring(); ring == nil || ring == ended; ring = r.ring() {
			if err := r.closeOld(); err != nil {
				r.fail(err)
			}
			if r.over() || !r.pause(ctx, poll) {
				r.finish(ctx)
				return
			}
		}
		from := r.requested
		if r.last > 0 {
			from = r.last + 1 // of a new connection
		}
		err := r.follow(ctx, ring, ring.ReaderAt(from))
		switch {
		case errors.Is(err, errOver), ctx.Err() != nil:
			r.finish(ctx)
			return
		case err == nil: // the connection has ended
			if r.video != nil {
				r.video.Rejoin()
			}
			continue
		}
		r.fail(err)
		if !r.pause(ctx, retryPause) || r.over() {
			r.finish(ctx)
			return
		}
		r.requested = max(r.requested, r.last) // from the key frame before it, a little twice
		r.last = 0
		ring = nil
	}
}

// end returns to when is recorded as of a time, both in CLOCK_MONOTONIC.
func (r *recording) end(now int64) int64 {
	switch {
	case !r.continuous:
		return r.camera.end(now)
	case r.wantsAll():
		return math.MaxInt64
	}
	return 0
}

// closeOld closes a file of continuous recording that no unit has ended because the camera sends none.
func (r *recording) closeOld() error {
	if !r.continuous || r.writer == nil || r.recorder.now()-r.video.First() < int64(continuousLength+lateness) {
		return nil
	}
	r.setState(&CameraStatus{})
	return r.closeFile(nil)
}

// over reports whether no unit is waited for any more.
func (r *recording) over() bool {
	r.join()
	now := r.recorder.now()
	return now-int64(lateness) > r.end(now)
}

// pause waits; it returns false when ctx has ended.
func (r *recording) pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// join adds events that have come meanwhile to the clip.
func (r *recording) join() {
	if r.continuous {
		return
	}
	_, events := r.take()
	if len(events) == 0 {
		return
	}
	for _, id := range events {
		if !slices.Contains(r.events, id) {
			r.events = append(r.events, id)
		}
	}
	if r.writer == nil {
		return
	}
	for _, id := range events {
		if !slices.Contains(r.writer.clip.Events, id) {
			r.writer.clip.Events = append(r.writer.clip.Events, id)
		}
	}
	r.update()
}

// update stores the row of the open clip. An error is that of the next write as well.
func (r *recording) update() {
	err := r.recorder.Index.UpdateClip(r.recorder.context(), r.writer.clip)
	if err != nil {
		r.recorder.Logger.Debug("clip not updated", "camera", r.name, "error", err)
	}
}

// follow records the units of one connection. It returns nil at the end of the connection, errOver at the end of the recording, and errors
// of the disk and of the video.
func (r *recording) follow(ctx context.Context, ring *capture.Ring, reader *capture.UnitReader) error {
	var skipped uint64
	for {
		r.join()
		waiting, cancel := context.WithTimeout(ctx, poll)
		unit, err := reader.Next(waiting)
		timedOut := waiting.Err() != nil
		cancel()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && timedOut:
			if r.over() {
				return errOver
			}
			if r.ring() != ring { // the connection hangs, and the camera has another
				return nil
			}
			err = r.flushStale()
			if err == nil {
				err = r.closeOld()
			}
		case err != nil:
			return nil //nolint:nilerr // the connection has ended, which is no failure of the recording
		case unit.Received > r.end(r.recorder.now()):
			return errOver
		case unit.Key && r.ring() != ring: // the camera has a better stream again
			return nil
		default:
			if now := reader.Skipped(); r.last > 0 && now != skipped {
				r.skipped.Add(now - skipped)
			}
			skipped = reader.Skipped()
			err = r.add(ctx, &unit)
		}
		if err != nil {
			return err
		}
	}
}

// flushStale writes what waits for the end of its fragment while the camera sends nothing.
func (r *recording) flushStale() error {
	if r.video == nil || !r.video.Waiting() || r.recorder.now()-r.video.Newest() < int64(fragmentLength) {
		return nil
	}
	return r.write(r.video.Flush())
}

// add adds a unit to the file, or to a new one if it does not fit.
func (r *recording) add(ctx context.Context, unit *capture.Unit) error {
	if r.writer != nil && !r.continues(unit) {
		if err := r.closeFile(nil); err != nil {
			return err
		}
		if active := r.active(unit.Received); len(active) > 0 && !r.continuous {
			r.events = active
		}
		r.requested = unit.Received
	}
	if r.writer == nil {
		if !unit.Key {
			return nil
		}
		if err := r.open(ctx, unit); err != nil {
			return err
		}
	}
	r.last = unit.Received
	return r.write(r.video.Add(unit))
}

// continues reports whether a unit belongs to the open file.
func (r *recording) continues(unit *capture.Unit) bool {
	if !r.video.Accepts(unit) {
		return false
	}
	if !unit.Key {
		return true
	}
	length := maxLength
	if r.continuous {
		length = continuousLength
	}
	jump := r.recorder.offset() - time.Duration(r.offset)
	return unit.Received-r.video.First() < int64(length) && jump.Abs() < clockJump
}

// open begins a file with a key frame.
func (r *recording) open(ctx context.Context, unit *capture.Unit) error {
	video, err := mp4.New(unit)
	if err != nil {
		return err
	}
	video.FragmentLength = fragmentLength
	header, err := video.Header()
	if err != nil {
		return err
	}
	r.offset = int64(r.recorder.offset())
	start := time.Unix(0, unit.Received+r.offset)
	id := newID(start)
	clip := &Clip{
		ID: id, Camera: r.name, Events: slices.Clone(r.events), Path: path.Join(directoryName(r.name), id+".mp4"),
		Start: start, Requested: time.Unix(0, r.requested+r.offset), Codec: video.Codec(), State: Open,
	}
	w, err := openWriter(ctx, r.recorder, clip, header)
	if err != nil {
		return err
	}
	r.video, r.writer = video, w
	r.failed = false
	r.setState(&CameraStatus{Recording: true})
	return nil
}

// write writes a fragment, if there is one.
func (r *recording) write(fragment []byte, err error) error {
	if err != nil || len(fragment) == 0 {
		return err
	}
	begun := r.recorder.now()
	if err := r.writer.write(r.recorder.context(), fragment); err != nil {
		return err
	}
	r.recorder.slowest(time.Duration(r.recorder.now() - begun))
	r.writer.clip.Duration = r.video.Length()
	r.writer.clip.Bytes = r.writer.size
	return nil
}

// closeFile ends the open file; failure is why it ends before its time.
func (r *recording) closeFile(failure error) error {
	if r.writer == nil {
		return nil
	}
	err := failure
	if err == nil {
		err = r.write(r.video.Flush())
	}
	closeErr := r.writer.close(r.recorder.context(), err)
	if r.writer.clip.State == Closed {
		r.recorded = true
		if !r.continuous {
			r.recorder.clips.Add(1)
		}
	}
	r.writer, r.video = nil, nil
	if err == nil {
		err = closeErr
	}
	return err
}

// fail ends the file after an error, which may be that of closing it.
func (r *recording) fail(err error) {
	_ = r.closeFile(err)
	r.failed = true
	r.recorder.failures.Add(1)
	r.setState(&CameraStatus{Reason: err.Error()})
}

// finish ends the recording. One that the end of the run has cut short says nothing about its camera.
func (r *recording) finish(ctx context.Context) {
	if err := r.closeFile(nil); err != nil {
		r.fail(err)
	}
	if !r.recorded {
		r.recorder.missed.Add(uint64(len(r.events)))
	}
	switch {
	case r.failed, ctx.Err() != nil && !r.recorded:
	case r.recorded, r.continuous:
		r.setState(&CameraStatus{})
	default:
		r.setState(&CameraStatus{Reason: "the camera sent no video for the last event"})
	}
}

// setState publishes the state.
func (r *recording) setState(now *CameraStatus) {
	failing, again := "no clips are recorded", "clips are recorded again"
	if r.continuous {
		failing, again = "the camera is not recorded continuously", "the camera is recorded continuously again"
	}
	r.condition.set(now, r.recorder.now(), r.recorder.Logger.With("camera", r.name), failing, again)
}

package cascade

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
)

// Secondary runs secondary networks on the tracked objects of cameras, on each at most as often as its stages specify, and keeps the
// results. The networks run concurrently with the caller: a result is available with a later frame. While a request runs, the objects of
// new frames gather for the next one, so that many cameras make few large requests. The caller never waits for a network, except with
// Frame.Wait for one that does not hang; it calls nothing of a network that may not return. A stage with an Opener is opened while frames
// go on, and again, in a network of its own, when a request hangs; its attributes are missing until then.
//
// Set the fields, call Open, then Process for every frame and Attributes as needed, both from one goroutine. It allocates nothing once it
// has seen the largest number of objects.
type Secondary struct {
	Stages []Stage
	// Labels are those of the first network.
	Labels []string
	// Logger logs when a network starts to fail, and when it works again; nil for slog.Default.
	Logger *slog.Logger

	ctx     context.Context // of Openers
	stop    context.CancelFunc
	workers []*worker // those of Open, also after Close

	binding  sync.Mutex
	embedder string // name of the stage with an embedding network; guarded by binding
	changed  []uint64
	scratch  []postprocess.Attribute
	vector   []float32
}

// Stats counts the work of a stage.
type Stats struct {
	Name     string // of the stage
	Error    string // why its newest request failed; empty after one that did not
	Crops    uint64 // classified
	Requests uint64 // of the network
	Failed   uint64 // crops that the engine rejected or lost, or for which its output was invalid
	Missed   uint64 // crops of objects that waited for another interval, because the network was not free
	Busy     time.Duration
	Hangs    bool      // there has been no result for hangTimeout
	Stuck    bool      // too many requests have not returned: it is not opened again until they have
	Slow     bool      // it does not keep up: crops are missed
	Last     time.Time // of the newest result; zero for none
}

// worker runs one stage.
type worker struct {
	*Stage // replaced when its network is opened
	logger *slog.Logger

	mu      sync.Mutex
	changed sync.Cond // work was added or finished, the network is opened, or the stage is closed
	net     *network  // nil while none is open
	opening opening
	closed  bool
	cameras map[string]map[uint64]*track
	unused  []*track
	stats   Stats
	due     []candidate // goroutine of Process only
	hurried bool        // nobody waits any more
	window  Stats       // at the begin of the window for which watch checks whether the network keeps up
}

// request is a batch of objects.
type request struct {
	cropBatch
	subjects []subject
}

type subject struct {
	camera string
	track  uint64
}

// candidate is an object whose next crop is due.
type candidate struct {
	track int // in the frame
	state *track
}

// Open validates the stages and starts them, those without a predictor as soon as it is open: see Await. An error leaves their predictors
// open.
func (a *Secondary) Open() error {
	for i := range a.Stages {
		if err := a.Stages[i].check(a.Labels); err != nil {
			return err
		}
	}
	var workers []*worker
	var open []*network // of workers, nil for one whose network is yet to be opened
	for i := range a.Stages {
		s := &worker{Stage: &a.Stages[i], logger: cmp.Or(a.Logger, slog.Default()), cameras: map[string]map[uint64]*track{}}
		s.changed.L = &s.mu
		s.opening.first = make(chan struct{})
		var n *network
		if s.Predictor != nil {
			err := s.bind(&a.embedder)
			if err == nil {
				n, err = newNetwork(s.Stage)
			}
			if err != nil {
				freeAll(open)
				return err
			}
			s.opening.end(nil)
		}
		workers, open = append(workers, s), append(open, n)
	}
	a.workers = workers
	a.ctx, a.stop = context.WithCancel(context.Background())
	for i, s := range a.workers {
		s.mu.Lock()
		if open[i] != nil {
			s.begin(open[i])
		} else {
			a.reopen(s)
		}
		s.mu.Unlock()
	}
	go a.watch()
	return nil
}

// Frame is an image of a camera with its tracked objects.
type Frame struct {
	Camera string
	Time   time.Time
	// Image is read during Process only. Objects of an image without Data are not processed.
	Image  engine.Image
	Tracks []postprocess.Track
	// Wait makes Process wait for the results of this frame: for videos, whose results must not depend on the speed of processing. It does
	// not wait for a network that hangs.
	Wait bool
	// OnEmbedding is called with a new embedding of a track of this frame, a vector of length 1 that is valid during the call. It may be
	// nil.
	OnEmbedding func(track uint64, vector []float32)
}

// Process takes the crops that are due from a frame, and returns the tracks with another attribute than in the last frame of this camera.
// The result is valid until the next call.
func (a *Secondary) Process(f *Frame) (changed []uint64) {
	a.changed = a.changed[:0]
	for _, s := range a.workers {
		a.changed = s.process(f, a.changed)
	}
	return a.changed
}

// Attributes returns the attributes of an object, valid until the next call of Process or Attributes.
func (a *Secondary) Attributes(camera string, track uint64) []postprocess.Attribute {
	a.scratch = a.scratch[:0]
	for _, s := range a.workers {
		if attribute, ok := s.attribute(camera, track); ok {
			a.scratch = append(a.scratch, attribute)
		}
	}
	return a.scratch
}

// Embedding returns the latest embedding of an object if a stage has KeepEmbedding set; else nil. It is valid until the next call.
func (a *Secondary) Embedding(camera string, track uint64) []float32 {
	a.vector = a.vector[:0]
	for _, s := range a.workers {
		if s.KeepEmbedding {
			s.mu.Lock()
			if v := s.cameras[camera][track]; v != nil {
				a.vector = append(a.vector, v.vector...)
			}
			s.mu.Unlock()
		}
	}
	return a.vector
}

// Embedder returns the stage with an embedding network, or with a setting of one while its network is not open; nil for none.
func (a *Secondary) Embedder() *Stage {
	for _, s := range a.workers {
		s.mu.Lock()
		stage, embeds := s.Stage, s.embeds || s.net == nil && (s.KeepEmbedding || s.MaxLostAge > 0)
		s.mu.Unlock()
		if embeds {
			return stage
		}
	}
	return nil
}

// Stats returns the counts of each stage, in their order. Any goroutine may call it after Open.
func (a *Secondary) Stats() (all []Stats) {
	for _, s := range a.workers {
		s.mu.Lock()
		all = append(all, s.stats)
		all[len(all)-1].Name = s.Name
		all[len(all)-1].Stuck = s.opening.stuck != nil
		s.mu.Unlock()
	}
	return all
}

// StopWaiting ends the waiting of Process for all frames: the run ends. Any goroutine may call it after Open.
func (a *Secondary) StopWaiting() {
	for _, s := range a.workers {
		s.mu.Lock()
		s.hurried = true
		s.changed.Broadcast()
		s.mu.Unlock()
	}
}

// closeLimit bounds how long Close waits for all networks together.
const closeLimit = 2 * time.Second

// Close stops the stages and closes their predictors. A network that hangs is abandoned with its predictor and its goroutine.
func (a *Secondary) Close() error {
	if a.stop == nil || len(a.Stages) == 0 {
		return nil
	}
	a.Stages = nil
	a.stop()
	for _, s := range a.workers {
		s.mu.Lock()
		s.closed = true
		s.changed.Broadcast()
		s.mu.Unlock()
	}
	limit := time.NewTimer(closeLimit)
	defer limit.Stop()
	var errs []error
	over := false
	for _, s := range a.workers {
		s.mu.Lock()
		n, name := s.net, s.Name
		s.mu.Unlock()
		if n == nil { // one that is being opened is closed when it is there
			continue
		}
		if !over {
			select {
			case <-n.done:
			case <-limit.C:
				over = true
			}
		}
		select {
		case <-n.done:
			errs = append(errs, n.err)
		default:
			s.logger.Warn("secondary network hangs, it is not closed", "cascade", name)
		}
	}
	return errors.Join(errs...)
}

// maxMissing is how many frames an object may be missing before it is forgotten: its last event comes with the first of them.
const maxMissing = 8

// process takes a frame of one camera.
func (s *worker) process(f *Frame, changed []uint64) []uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.cameras[f.Camera]
	if known == nil {
		known = map[uint64]*track{}
		s.cameras[f.Camera] = known
	}
	for track, v := range known {
		v.missing++
		if v.missing > maxMissing {
			delete(known, track)
			s.unused = append(s.unused, v)
		}
	}
	for s.net == nil && s.waits(f) && s.opening.running && time.Since(s.opening.begun) < hangTimeout {
		s.changed.Wait()
	}
	s.findDue(f, known)
	if s.net == nil {
		s.missDue(f)
		return changed
	}
	s.waitUntilIdle(f)                                              // earlier frames must not take its place
	for tries := len(s.due); s.addCrops(f) && tries >= 0; tries-- { // each makes room for another crop
		s.waitUntilIdle(f)
	}
	s.waitUntilIdle(f)
	for i := range f.Tracks {
		if v := known[f.Tracks[i].ID]; v != nil {
			if s.embeds {
				if v.updated && f.OnEmbedding != nil {
					f.OnEmbedding(f.Tracks[i].ID, v.vector)
				}
				v.updated = false
				continue
			}
			if class, score, _ := s.winner(v); class >= 0 && score >= s.Confidence && class != v.reported {
				v.reported = class
				changed = append(changed, f.Tracks[i].ID)
			}
		}
	}
	return changed
}

// waitUntilIdle waits until no crop is pending and the next request has the room that it needs, if the frame waits at all. The lock is
// held.
func (s *worker) waitUntilIdle(f *Frame) {
	for s.waits(f) && s.net != nil && (s.net.spare == nil || s.net.hasWork()) {
		s.changed.Wait()
	}
}

// waits reports whether a frame waits for the network. The lock is held.
func (s *worker) waits(f *Frame) bool { return f.Wait && !s.closed && !s.hurried && !s.stats.Hangs }

// findDue finds the objects whose next crop is due, those that have waited longest first.
func (s *worker) findDue(f *Frame, known map[uint64]*track) {
	s.due = s.due[:0]
	for i := range f.Tracks {
		t := &f.Tracks[i]
		v := known[t.ID]
		if v != nil {
			v.missing = 0
		}
		if f.Image.Width == 0 || !t.Matched() || t.State == postprocess.Ended || !s.wants(&t.Detection) {
			continue
		}
		if v == nil {
			v = s.newTrack()
			v.due = f.Time
			known[t.ID] = v
		}
		switch ahead := v.due.Sub(f.Time); {
		case ahead > 0 && ahead <= s.Interval: // else the clock has been set back
		case v.inFlight:
			s.miss(v, f.Time)
		default:
			s.due = append(s.due, candidate{i, v})
		}
	}
	slices.SortFunc(s.due, func(x, y candidate) int {
		return cmp.Or(x.state.due.Compare(y.state.due), cmp.Compare(x.track, y.track))
	})
}

// miss counts a crop that is due and cannot be taken, once for each interval that it waits.
func (s *worker) miss(v *track, now time.Time) {
	switch {
	case v.waiting.IsZero() || now.Before(v.waiting):
		v.waiting = now
	case now.Sub(v.waiting) >= s.Interval:
		v.waiting = now
		s.stats.Missed++
	}
}

func (s *worker) newTrack() *track {
	if len(s.unused) == 0 {
		s.unused = append(s.unused, &track{})
	}
	v := s.unused[len(s.unused)-1]
	s.unused = s.unused[:len(s.unused)-1]
	*v = track{reported: -1, vector: v.vector[:0]}
	return v
}

// missDue counts what is due and cannot be taken.
func (s *worker) missDue(f *Frame) {
	for _, c := range s.due {
		s.miss(c.state, f.Time)
	}
}

// addCrops adds what is due to the next request, and removes it from due; objects without room remain due. It returns true if the frame
// waits and more crops find room when the request is done.
func (s *worker) addCrops(f *Frame) (again bool) {
	if s.net == nil { // it was abandoned while the frame waited
		s.missDue(f)
		return false
	}
	n := s.net
	most := max(n.batch, maxObjects)
	n.pending.wanted = 0
	done := 0
	for ; done < len(s.due) && len(n.pending.subjects) < most; done++ {
		c := s.due[done]
		t := &f.Tracks[c.track]
		added, err := n.pending.add(&f.Image, t.Box)
		if errors.Is(err, errFull) {
			break
		}
		c.state.due = f.Time.Add(s.Interval)
		c.state.waiting = time.Time{}
		if err != nil {
			s.fail(1, err)
		}
		if added {
			c.state.inFlight = true
			n.pending.subjects = append(n.pending.subjects, subject{f.Camera, t.ID})
		}
	}
	s.due = slices.Delete(s.due, 0, done)
	n.room = max(n.room, n.pending.wanted)
	if n.hasWork() {
		s.changed.Broadcast()
	}
	if s.waits(f) && n.pending.wanted > 0 {
		return true
	}
	s.missDue(f)
	return false
}

// maxObjects bounds the objects that gather while a request runs, for networks with smaller batches.
const maxObjects = 64

// work runs one request of a network after the other, and closes it when it is no longer the stage's or the stage is closed.
func (s *worker) work(n *network) {
	defer n.close()
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		for !n.hasWork() && !s.closed {
			s.changed.Wait()
		}
		if s.closed {
			return
		}
		r := n.take()
		room := n.room
		s.mu.Unlock()
		err := r.run()
		var noRoom error
		if r.room() < room {
			r.clear()
			noRoom = r.grow(room)
		}
		s.mu.Lock()
		if s.net != n {
			s.opening.abandoned--
			return
		}
		s.stats.Busy += time.Since(n.begun)
		n.running = nil
		if len(r.subjects) > 0 {
			s.record(r, err)
		}
		if s.stats.Hangs {
			s.stats.Hangs = false
			s.window = s.stats // what was missed meanwhile does not make it slow
		}
		if noRoom != nil {
			n.room = 0 // until the next crop wants it
			s.fail(1, noRoom)
		}
		n.putBack(r)
		s.changed.Broadcast()
	}
}

// record stores the predictions of a request for the objects that are still known.
func (s *worker) record(r *request, err error) {
	batch := r.stage.Model().MaxBatch
	s.stats.Crops += uint64(len(r.predictions))
	if len(r.predictions) > 0 {
		s.stats.Last = time.Now()
	}
	s.stats.Requests += uint64((len(r.predictions) + batch - 1) / batch)
	for i, of := range r.subjects {
		v := s.cameras[of.camera][of.track]
		if v == nil {
			continue
		}
		v.inFlight = false
		if i < len(r.predictions) && r.predictions[i].class >= 0 {
			v.add(r.predictions[i], s.Votes)
		}
	}
	if err != nil {
		failed := len(r.subjects) - len(r.predictions) + r.invalid
		if s.stats.Hangs { // they are counted
			failed = 0
		}
		s.fail(failed, err)
	} else if s.stats.Error != "" {
		s.stats.Error = ""
		s.logger.Info("secondary network works again", "cascade", s.Name)
	}
}

// hangTimeout is how long a request may take before the network counts as hanging.
const hangTimeout = 10 * time.Second

// slowWindow is the time over which watch checks whether a network keeps up.
const slowWindow = 10 * time.Second

// watch reports networks that hang or do not keep up, and has them opened again, until Close.
func (a *Secondary) watch() {
	const pause = time.Second
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	for tick := 1; ; tick++ {
		select {
		case <-a.ctx.Done():
			return
		case <-ticker.C:
		}
		for _, s := range a.workers {
			s.mu.Lock()
			s.checkHang()
			a.checkOpening(s)
			if tick%int(slowWindow/pause) == 0 {
				s.checkPace()
			}
			s.mu.Unlock()
		}
	}
}

// checkHang counts the crops of a request that does not end as failed and logs it, once. The lock is held.
func (s *worker) checkHang() {
	if s.net == nil || s.net.running == nil || s.stats.Hangs || time.Since(s.net.begun) < hangTimeout {
		return
	}
	err := fmt.Errorf("no result for %s", hangTimeout)
	s.stats.Hangs = true
	s.stats.Failed += uint64(len(s.net.running.subjects))
	s.stats.Error = err.Error()
	s.logger.Error("secondary network hangs, attributes are not updated", "cascade", s.Name, "error", err)
	s.changed.Broadcast() // who waits for it goes on
}

// checkPace logs when the network begins to miss crops, and when it has missed none for a whole window. The lock is held.
func (s *worker) checkPace() {
	missed, crops := s.stats.Missed-s.window.Missed, s.stats.Crops-s.window.Crops
	s.window = s.stats
	switch {
	case s.stats.Hangs || s.net == nil:
	case !s.stats.Slow && missed > crops/10:
		s.stats.Slow = true
		s.logger.Warn("secondary network is too slow, crops are missed", "cascade", s.Name, "missed", missed, "crops", crops,
			"seconds", slowWindow.Seconds())
	case s.stats.Slow && missed == 0:
		s.stats.Slow = false
		s.logger.Info("secondary network keeps up again", "cascade", s.Name)
	}
}

// fail counts failed crops, and logs the first failure of a row.
func (s *worker) fail(crops int, err error) {
	s.stats.Failed += uint64(crops)
	failing := s.stats.Error != ""
	s.stats.Error = err.Error()
	if !failing {
		s.logger.Error("secondary network failed, attributes are not updated", "cascade", s.Name, "error", err)
	}
}

// attribute returns the current attribute of an object.
func (s *worker) attribute(camera string, track uint64) (postprocess.Attribute, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.cameras[camera][track]
	if v == nil {
		return postprocess.Attribute{}, false
	}
	class, score, votes := s.winner(v)
	if s.embeds || class < 0 || score < s.Confidence {
		return postprocess.Attribute{}, false
	}
	return s.Stage.attribute(class, v.spelled, score, votes), true
}

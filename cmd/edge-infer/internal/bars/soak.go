package main

import (
	"context"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// soak runs the program for a long time with the demo model, several cameras and a real broker, and does to it what happens in the field:
// the broker stops, one camera stalls, one changes its resolution, one is opened again and again. The others must not feel it.
type soak struct {
	program, mosquitto string
	cameras            int
	width, height      int
	fps                float64
	duration           time.Duration
	faults, gpu        bool
	json               string
}

// The aims.
const (
	soakLate     = 0.001 // of the frames
	soakFairness = 0.97  // least over most served camera
	soakOthers   = 0.01  // of the rate, while another camera or the broker is in trouble
	soakGrowth   = 8.0   // MB an hour, of resident memory, plus what the slope's own uncertainty is
	soakOpenings = 1000
)

// runSoak reads the command line and does it.
func runSoak(ctx context.Context, args []string) error {
	o := soak{}
	flags := flag.NewFlagSet("soak", flag.ContinueOnError)
	flags.StringVar(&o.program, "program", "", "edge-infer")
	flags.StringVar(&o.mosquitto, "mosquitto", "mosquitto", "the broker's program; empty: a broker of this one")
	flags.IntVar(&o.cameras, "cameras", 4, "steady cameras")
	size := flags.String("size", "640x480", "of their images")
	flags.Float64Var(&o.fps, "fps", 30, "of each")
	flags.DurationVar(&o.duration, "duration", 10*time.Minute, "of the whole run")
	flags.BoolVar(&o.faults, "faults", true, "do to it what happens in the field")
	flags.BoolVar(&o.gpu, "gpu", false, "watch the first GPU's memory too")
	rates := flags.String("rates", "", "in place of -fps several, the largest first: each for -duration, until next to no frame is late")
	flags.StringVar(&o.json, "json", "", "write the verdicts to a file")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if n, err := fmt.Sscanf(*size, "%dx%d", &o.width, &o.height); n != 2 || err != nil || o.program == "" || o.cameras < 1 || !(o.fps > 0) ||
		o.duration < leastSoak {
		return usage{}
	}
	program, err := filepath.Abs(o.program)
	if err != nil {
		return err
	}
	o.program = program
	s, err := o.measureRates(ctx, *rates)
	if err != nil {
		return err
	}
	if err := s.save(o.json); err != nil {
		return err
	}
	return s.print(os.Stdout)
}

// measureRates finds the largest of some rates that the machine keeps up with; without any it measures at the one that is set.
func (o *soak) measureRates(ctx context.Context, rates string) (*sheet, error) {
	if rates == "" {
		s, _, err := o.run(ctx)
		return s, err
	}
	all := &sheet{Time: time.Now(), Before: loadAverage()}
	busy, begun, found := watchLoad(), time.Now(), false
	for rate := range strings.SplitSeq(rates, ",") {
		var err error
		if o.fps, err = strconv.ParseFloat(rate, 64); err != nil || !(o.fps > 0) {
			return nil, fmt.Errorf("rate %q: must be a positive number", rate)
		}
		s, late, err := o.run(ctx)
		if err != nil {
			return nil, err
		}
		all.beside("soak", fmt.Sprintf("%d cameras at %g a second: frames late or lost", o.cameras, o.fps), figures{late.lateShare()}, "share",
			fmt.Sprintf("%d of %d, CPUs busy to %.0f %%", late.late+late.lost, late.frames+late.lost, 100*s.Busy))
		if late.lateShare() <= soakLate {
			all.beside("soak", "largest rate of each camera", figures{o.fps}, "/s", fmt.Sprintf("of %s, with at most %g late", rates, soakLate))
			found = true
			break
		}
	}
	if !found {
		all.skip("soak", "too many frames are late at each of the rates "+rates)
	}
	all.Busy, all.After, all.Took = busy(), loadAverage(), time.Since(begun).Seconds()
	return all, nil
}

// leastSoak is the shortest run that says anything: each window lasts a few seconds.
const leastSoak = time.Minute

// The program may take an eighth of the run to come to rest, between these. What only its start needs, some hundred MB for networks and
// drawn scenes, goes back to the system 20 s later.
const (
	shortestSettling = 25 * time.Second
	longestSettling  = 75 * time.Second
)

// window is a part of the run in which one thing happens.
type window struct {
	name       string
	begin, end func(context.Context) error // nil for nothing to do
}

// run is the whole measurement at one rate, and late the steady cameras' frames. The settling before the first window counts for nothing.
func (o *soak) run(ctx context.Context) (_ *sheet, late span, _ error) {
	dir, err := os.MkdirTemp("", "soak")
	if err != nil {
		return nil, late, err
	}
	defer os.RemoveAll(dir)
	broker, err := o.openBroker(ctx, dir)
	if err != nil {
		return nil, late, err
	}
	defer broker.close()
	odd, err := openOddCameras(dir)
	if err != nil {
		return nil, late, err
	}
	defer odd.close()
	s := &sheet{Time: time.Now(), Before: loadAverage()}
	busy, begun := watchLoad(), time.Now()
	subject := &subject{program: o.program, dir: dir, broker: broker.address, seen: newRecord(o.fps)}
	if err := subject.configure(o.steady(), o.oddOnes(odd, false)); err != nil {
		return nil, late, err
	}
	if err := subject.start(ctx); err != nil {
		return nil, late, err
	}
	defer subject.kill()
	settle := min(longestSettling, max(shortestSettling, o.duration/8))
	if err := sleep(ctx, settle); err != nil {
		return nil, late, err
	}
	watched := []*memoryWatch{watchMemory(func() (float64, bool) { return resident(subject.pid()) })}
	if o.gpu {
		watched = append(watched, watchMemory(gpuUsed))
	}
	windows := o.windows(subject, broker, odd)
	each := (o.duration - settle) / time.Duration(len(windows))
	counted := make([]map[string]span, len(windows))
	for i, w := range windows {
		fmt.Fprintf(os.Stderr, "soak: %s for %v\n", w.name, each.Round(time.Second))
		if counted[i], err = o.watch(ctx, w, each, subject, watched); err != nil {
			return nil, late, fmt.Errorf("%s: %w", w.name, err)
		}
	}
	var used []memory
	for _, w := range watched {
		used = append(used, w.end())
	}
	lent, err := subject.lent(ctx, o.steady(), o.oddOnes(odd, false))
	if err != nil {
		return nil, late, err
	}
	if err := subject.stop(); err != nil {
		return nil, late, err
	}
	s.Busy, s.After, s.Took = busy(), loadAverage(), time.Since(begun).Seconds()
	return s, o.judge(s, windows, counted, used, lent, subject.seen), nil
}

// judge holds a memory's growth to the aim.
func (m *memory) judge(s *sheet, name string) {
	if math.IsInf(m.uncertainty, 1) {
		s.skip("soak", name+" could not be read")
		return
	}
	s.atMost("soak", name+", slope between changes", figures{m.slope}, soakGrowth+m.uncertainty, 0, "MB/h",
		fmt.Sprintf("%.1f MB at first, %.1f at last, most %.1f; slope uncertain by %.1f; steps at changes %+.1f", m.first, m.last, m.most,
			m.uncertainty, m.steps))
}

// openBroker is a real one, or one of this program where that will do.
func (o *soak) openBroker(ctx context.Context, dir string) (*mosquitto, error) {
	if o.faults && o.mosquitto != "" {
		return openMosquitto(ctx, o.mosquitto, dir)
	}
	return openOwn()
}

// afterChange is how long memory is not looked at when something has changed, but a third of the window at most.
const afterChange = 10 * time.Second

// watch lets one window pass and gives what the cameras' frames came to in it.
func (o *soak) watch(
	ctx context.Context, w window, each time.Duration, subject *subject, watched []*memoryWatch,
) (map[string]span, error) {
	if w.begin != nil {
		if err := w.begin(ctx); err != nil {
			return nil, err
		}
	}
	before, at := subject.seen.spans(), time.Now()
	settle := min(afterChange, each/3)
	if err := sleep(ctx, settle); err != nil {
		return nil, err
	}
	for _, m := range watched {
		m.begin()
		defer m.change()
	}
	if err := sleep(ctx, each-settle); err != nil {
		return nil, err
	}
	counted := map[string]span{}
	for name, now := range subject.seen.spans() {
		counted[name] = now.since(before[name], time.Since(at))
	}
	if w.end != nil {
		return counted, w.end(ctx)
	}
	return counted, ctx.Err()
}

// windows are the quiet time and the faults.
func (o *soak) windows(subject *subject, broker *mosquitto, odd *oddCameras) []window {
	quiet := window{name: "quiet"}
	if !o.faults {
		return []window{quiet, quiet, quiet, quiet}
	}
	reopened := func(on bool) func(context.Context) error {
		return func(context.Context) error {
			if err := subject.configure(o.steady(), o.oddOnes(odd, on)); err != nil {
				return err
			}
			return subject.reload()
		}
	}
	return []window{
		quiet,
		{"broker stopped", broker.pause, broker.resume},
		{"a camera stalls", odd.stall(true), odd.stall(false)},
		{"a camera changes its resolution", odd.resize(true), odd.resize(false)},
		{"a camera is opened again and again", reopened(true), reopened(false)},
		quiet,
	}
}

// steady are the cameras that are counted, as name and URI.
func (o *soak) steady() (cameras [][2]string) {
	for i := range o.cameras {
		cameras = append(cameras, [2]string{
			fmt.Sprintf("steady%d", i+1), fmt.Sprintf("demo?width=%d&height=%d&fps=%g&seed=%d", o.width, o.height, o.fps, i+1),
		})
	}
	return cameras
}

// oddOnes are the cameras that make trouble. A directory of one image begins anew after each: thirty openings a second.
func (o *soak) oddOnes(odd *oddCameras, reopened bool) (cameras [][2]string) {
	if !o.faults {
		return nil
	}
	cameras = [][2]string{{"stalls", odd.url("stalls")}, {"resizes", odd.url("resizes")}}
	if reopened {
		cameras = append(cameras, [2]string{"reopened", "file://" + odd.dir + "?fps=30&loop=1"})
	}
	return cameras
}

// judge writes what it all came to, and gives what the steady cameras' frames did.
func (o *soak) judge(s *sheet, windows []window, counted []map[string]span, used []memory, lent map[string]int, seen *record) span {
	var total span
	served, rate := figures{}, 0.0
	all := seen.spans()
	late := make([]span, len(windows))
	for i := range o.cameras {
		name := fmt.Sprintf("steady%d", i+1)
		var one span
		for k, c := range counted {
			one.add(c[name])
			late[k].add(c[name])
		}
		total.add(one)
		served, rate = append(served, float64(one.frames)), rate+one.rate()
		s.beside("soak", name+", frames a second", figures{one.rate()}, "/s", fmt.Sprintf("of %g, latency p50 %.1f ms p99 %.1f ms", o.fps,
			seen.quantile(name, 50), seen.quantile(name, 99)))
	}
	wanted := fmt.Sprintf("of %g", o.fps*float64(o.cameras))
	if total.lateShare() > soakLate { // it is overloaded, so this is the most that it does
		wanted += fmt.Sprintf("; as if of %.1f cameras, or %.1f a second of each", rate/o.fps, rate/float64(o.cameras))
	}
	s.beside("soak", "all of them, frames a second", figures{rate}, "/s", wanted)
	s.atMost("soak", "frames late or lost", figures{total.lateShare()}, soakLate, 0, "share",
		fmt.Sprintf("%d of %d; late is older than the time to the next when handed over", total.late+total.lost, total.frames+total.lost))
	for i, w := range windows {
		s.beside("soak", w.name+": frames late or lost", figures{late[i].lateShare()}, "share",
			fmt.Sprintf("%d of %d", late[i].late+late[i].lost, late[i].frames+late[i].lost))
	}
	s.atLeast("soak", "fairness, least over most served", figures{slices.Min(served) / max(slices.Max(served), 1)}, soakFairness, 0, "")
	used[0].judge(s, "resident memory")
	if o.gpu {
		used[1].judge(s, "memory in use on the GPU")
	}
	leaked := 0
	for _, n := range lent {
		leaked += n
	}
	s.atMost("soak", "frame buffers that nobody gives back", figures{float64(leaked)}, 0, 0, "", fmt.Sprintf("%d cameras", len(lent)))
	if !o.faults {
		return total
	}
	quiet := (o.slowest(counted[0]) + o.slowest(counted[len(counted)-1])) / 2
	for i, w := range windows {
		if w.name != "quiet" {
			others := figures{o.slowest(counted[i]) / max(quiet, 1e-9)}
			s.atLeast("soak", w.name+": others' rate over that of quiet times", others, 1-soakOthers, 0, "")
		}
	}
	opened := all["reopened"]
	s.judge("soak", "openings of a camera", figures{float64(opened.frames + opened.lost)}, soakOpenings, 0, "", "each has one image", true)
	return total
}

// slowest is the rate of the steady camera that was served least.
func (o *soak) slowest(counted map[string]span) float64 {
	rates := figures{}
	for name, c := range counted {
		if strings.HasPrefix(name, "steady") {
			rates = append(rates, c.rate())
		}
	}
	if len(rates) == 0 {
		return 0
	}
	return rates.sorted()[0]
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

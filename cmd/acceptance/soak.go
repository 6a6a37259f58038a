package main

import (
	"context"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// soak runs edge-infer for a long time with the demo model, several cameras and a real broker, and injects faults: the broker hangs, one
// camera stalls, one changes its resolution, one is reopened continuously. The other cameras must not be affected.
type soak struct {
	program, mosquitto string
	cameras            int
	width, height      int
	fps                float64
	duration           time.Duration
	faults, gpu        bool
	json               string
}

// The targets.
const (
	soakLate     = 0.001 // share of frames
	soakFairness = 0.97  // least / most served camera
	soakOthers   = 0.01  // loss of rate during a fault elsewhere
	soakGrowth   = 8.0   // MB per hour of resident memory, plus the uncertainty of the slope
	soakOpenings = 1000
)

// runSoak is the command soak.
func runSoak(ctx context.Context, args []string) error {
	o := soak{}
	flags := flag.NewFlagSet("soak", flag.ContinueOnError)
	flags.StringVar(&o.program, "program", "", "edge-infer")
	flags.StringVar(&o.mosquitto, "mosquitto", "mosquitto", "program of the broker; empty: this program's own broker")
	flags.IntVar(&o.cameras, "cameras", 4, "steady cameras")
	size := flags.String("size", "640x480", "size of their images")
	flags.Float64Var(&o.fps, "fps", 30, "frame rate of each")
	flags.DurationVar(&o.duration, "duration", 10*time.Minute, "duration of the whole run")
	flags.BoolVar(&o.faults, "faults", true, "inject faults")
	flags.BoolVar(&o.gpu, "gpu", false, "also watch the memory of the first GPU")
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
	s, err := o.run(ctx)
	if err != nil {
		return err
	}
	if err := s.save(o.json); err != nil {
		return err
	}
	return s.print(os.Stdout)
}

// leastSoak is the shortest meaningful run: each window lasts a few seconds.
const leastSoak = time.Minute

// The program may settle for an eighth of the run, within these bounds. Memory that only its start needs, some hundred MB for networks and
// drawn scenes, returns to the system after 20 s.
const (
	shortestSettling = 25 * time.Second
	longestSettling  = 75 * time.Second
)

// window is a part of the run with at most one fault.
type window struct {
	name       string
	begin, end func(context.Context) error // may be nil
}

// run measures. The time before the first window is not counted.
func (o *soak) run(ctx context.Context) (*report, error) {
	dir, err := os.MkdirTemp("", "soak")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	broker, err := o.openBroker(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer broker.close()
	bad, err := openFaultyCameras(dir)
	if err != nil {
		return nil, err
	}
	defer bad.close()
	s := &report{Time: time.Now(), Before: loadAverage()}
	busy, begun := watchLoad(), time.Now()
	subject := &subject{program: o.program, dir: dir, broker: broker.address, seen: newRecord(o.fps)}
	if err := subject.configure(o.steady(), o.faulty(bad, false)); err != nil {
		return nil, err
	}
	if err := subject.start(ctx); err != nil {
		return nil, err
	}
	defer subject.kill()
	settle := min(longestSettling, max(shortestSettling, o.duration/8))
	if err := sleep(ctx, settle); err != nil {
		return nil, err
	}
	watched := []*memoryWatch{watchMemory(func() (float64, bool) { return resident(subject.pid()) })}
	if o.gpu {
		watched = append(watched, watchMemory(gpuUsed))
	}
	windows := o.windows(subject, broker, bad)
	each := (o.duration - settle) / time.Duration(len(windows))
	counted := make([]map[string]span, len(windows))
	for i, w := range windows {
		fmt.Fprintf(os.Stderr, "soak: %s for %v\n", w.name, each.Round(time.Second))
		if counted[i], err = o.watch(ctx, w, each, subject, watched); err != nil {
			return nil, fmt.Errorf("%s: %w", w.name, err)
		}
	}
	var used []memory
	for _, w := range watched {
		used = append(used, w.end())
	}
	lent, err := subject.lent(ctx, o.steady(), o.faulty(bad, false))
	if err != nil {
		return nil, err
	}
	if err := subject.stop(); err != nil {
		return nil, err
	}
	s.Busy, s.After, s.Took = busy(), loadAverage(), time.Since(begun).Seconds()
	o.judge(s, windows, counted, used, lent, subject.seen)
	return s, nil
}

// judge compares the growth of memory with the target.
func (m *memory) judge(s *report, name string) {
	if math.IsInf(m.uncertainty, 1) {
		s.skip("soak", name+" could not be read")
		return
	}
	s.atMost("soak", name+", slope between changes", figures{m.slope}, soakGrowth+m.uncertainty, 0, "MB/h",
		fmt.Sprintf("first %.1f MB, last %.1f, maximum %.1f; slope uncertainty %.1f; steps at changes %+.1f", m.first, m.last, m.max,
			m.uncertainty, m.steps))
}

// openBroker starts mosquitto, or this program's own broker without faults.
func (o *soak) openBroker(ctx context.Context, dir string) (*mosquitto, error) {
	if o.faults && o.mosquitto != "" {
		return openMosquitto(ctx, o.mosquitto, dir)
	}
	return openOwn()
}

// afterChange is the time after a change in which memory is not sampled, at most a third of the window.
const afterChange = 10 * time.Second

// watch runs one window and returns the frame counters of the cameras in it.
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

// windows returns the windows without and with faults.
func (o *soak) windows(subject *subject, broker *mosquitto, bad *faultyCameras) []window {
	quiet := window{name: "quiet"}
	if !o.faults {
		return []window{quiet, quiet, quiet, quiet}
	}
	reopened := func(on bool) func(context.Context) error {
		return func(context.Context) error {
			if err := subject.configure(o.steady(), o.faulty(bad, on)); err != nil {
				return err
			}
			return subject.reload()
		}
	}
	return []window{
		quiet,
		{"broker stopped", broker.pause, broker.resume},
		{"a camera stalls", bad.stall(true), bad.stall(false)},
		{"a camera changes its resolution", bad.resize(true), bad.resize(false)},
		{"a camera is opened again and again", reopened(true), reopened(false)},
		quiet,
	}
}

// steady returns the cameras that are counted, as name and URI.
func (o *soak) steady() (cameras [][2]string) {
	for i := range o.cameras {
		cameras = append(cameras, [2]string{
			fmt.Sprintf("steady%d", i+1), fmt.Sprintf("demo?width=%d&height=%d&fps=%g&seed=%d", o.width, o.height, o.fps, i+1),
		})
	}
	return cameras
}

// faulty returns the cameras with faults. A directory with one image is reopened after each frame: 30 times a second.
func (o *soak) faulty(bad *faultyCameras, reopened bool) (cameras [][2]string) {
	if !o.faults {
		return nil
	}
	cameras = [][2]string{{"stalls", bad.url("stalls")}, {"resizes", bad.url("resizes")}}
	if reopened {
		cameras = append(cameras, [2]string{"reopened", "file://" + bad.dir + "?fps=30&loop=1"})
	}
	return cameras
}

// judge adds the verdicts to the report.
func (o *soak) judge(s *report, windows []window, counted []map[string]span, used []memory, lent map[string]int, seen *record) {
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
		s.info("soak", name+", frames fps", figures{one.rate()}, "/s", fmt.Sprintf("of %g, latency p50 %.1f ms p99 %.1f ms", o.fps,
			seen.quantile(name, 50), seen.quantile(name, 99)))
	}
	wanted := fmt.Sprintf("of %g", o.fps*float64(o.cameras))
	if total.lateShare() > soakLate { // overloaded, so this is the capacity
		wanted += fmt.Sprintf("; capacity for %.1f cameras, or %.1f fps each", rate/o.fps, rate/float64(o.cameras))
	}
	s.info("soak", "sum, frames fps", figures{rate}, "/s", wanted)
	s.atMost("soak", "frames late or lost", figures{total.lateShare()}, soakLate, 0, "share",
		fmt.Sprintf("%d of %d; late: older than one frame interval when handed over", total.late+total.lost, total.frames+total.lost))
	for i, w := range windows {
		s.info("soak", w.name+": frames late or lost", figures{late[i].lateShare()}, "share",
			fmt.Sprintf("%d of %d", late[i].late+late[i].lost, late[i].frames+late[i].lost))
	}
	s.atLeast("soak", "fairness, least / most served", figures{slices.Min(served) / max(slices.Max(served), 1)}, soakFairness, 0, "")
	used[0].judge(s, "resident memory")
	if o.gpu {
		used[1].judge(s, "memory in use on the GPU")
	}
	leaked := 0
	for _, n := range lent {
		leaked += n
	}
	s.atMost("soak", "frame buffers never returned", figures{float64(leaked)}, 0, 0, "", fmt.Sprintf("%d cameras", len(lent)))
	if !o.faults {
		return
	}
	quiet := (o.slowest(counted[0]) + o.slowest(counted[len(counted)-1])) / 2
	for i, w := range windows {
		if w.name != "quiet" {
			others := figures{o.slowest(counted[i]) / max(quiet, 1e-9)}
			s.atLeast("soak", w.name+": rate of the others / rate without faults", others, 1-soakOthers, 0, "")
		}
	}
	opened := all["reopened"]
	s.judge("soak", "openings of a camera", figures{float64(opened.frames + opened.lost)}, soakOpenings, 0, "", "one frame each", true)
}

// slowest returns the rate of the least served steady camera.
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

package daemon

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/process"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
	"github.com/edge-infer/edge-infer/internal/testtool"
)

// reloadsEnvironment is how many times TestReloadsLeakNothing reloads; few without it.
const reloadsEnvironment = "EDGE_INFER_RELOADS"

// holdings is what a process owns, as it says itself. Resident memory is no measure of that: how much of its heap a process keeps between
// two collections, and how many arenas and stacks its threads have, is a matter of what runs beside it.
type holdings struct {
	goroutines, files int
	frames            int // bytes of the engine's memory that cameras have
	heap              int // bytes that a collection leaves
	cameras           int // that deliver frames
	resident          int // bytes

	stacks string // of the goroutines
}

func (h holdings) String() string {
	const mebibyte = 1 << 20
	return fmt.Sprintf("%d cameras, %d goroutines, %d files, %d bytes of frames, %.2f MiB of heap in use, %.1f MiB resident",
		h.cameras, h.goroutines, h.files, h.frames, float64(h.heap)/mebibyte, float64(h.resident)/mebibyte)
}

// reloader is a running daemon whose configuration is changed over and over, by each of the ways to ask for it, with mistakes in between.
type reloader struct {
	*programtest.Program
	t            testing.TB
	publisher    string // mosquitto_pub
	broker       int    // its port
	file, common string
	page         string // the address
	changes      int    // that must have come into force
}

const (
	reloadRound      = 210 // steps of all combinations; the first and the last configuration are the same
	reloadSubscribed = 12  // steps after which the daemon hears of MQTT

	// staysBehind is what a change may add to the heap in bytes: room for the page's events, which come to 12 kB a second until 4,096 are
	// held. The smallest camera's drawn scene has ten times as much; that of one that has just gone is there a moment longer.
	staysBehind = 40 << 10
)

func startReloader(t testing.TB) *reloader {
	r := &reloader{
		t: t, publisher: testtool.Program(t, "mosquitto_pub"), broker: programtest.FreePort(t),
		file: filepath.Join(t.TempDir(), "edge-infer.yaml"),
	}
	r.common = fmt.Sprintf("name: gate\nmqtt: {url: embedded, listen: '127.0.0.1:%d'}\nweb: {listen: '127.0.0.1:0', profiling: true}\n",
		r.broker)
	r.put(r.configuration(0))
	r.Program = programtest.Start(t, "--config", r.file)
	r.page = r.PrintedAfter("web page at ")
	go func() { // nobody reads the rest
		for range r.Lines {
			continue
		}
	}()
	for step := 1; step < reloadSubscribed; step++ {
		r.reload(step)
	}
	return r
}

// configuration is what a step has; that of reloadRound has three cameras, of 160x120, 320x240 and 160x120 pixels.
func (r *reloader) configuration(step int) string {
	text := r.common + fmt.Sprintf("detect: {confidence: 0.%d, iou: 0.%d}\nthermal: {margin: %d}\ncameras:\n", 3+step%3, 4+step%2, step%4)
	text += fmt.Sprintf("  - {name: a, uri: 'demo?width=160&height=120&fps=10', interval: %d, analytics: {", 1+step%2)
	text += fmt.Sprintf("zones: [{name: zone%d, points: [{x: 0, y: 0}, {x: 1, y: 0}, {x: 0.%d, y: 1}]}]}}\n", step%5, 1+step%9)
	if step%2 == 0 {
		text += fmt.Sprintf("  - {name: b, uri: 'demo?width=320&height=240&fps=10&seed=%d'}\n", 1+step%7)
	}
	if step%3 == 0 {
		text += "  - {name: c, uri: 'demo?width=160&height=120&fps=10', stall: 7s}\n"
	}
	return text
}

// put writes the file in one step, as editors do: the daemon looks at it by itself.
func (r *reloader) put(text string) {
	require.NoError(r.t, os.WriteFile(r.file+".part", []byte(text), 0o600))
	require.NoError(r.t, os.Rename(r.file+".part", r.file))
}

// ask makes a step's change known.
func (r *reloader) ask(step int) {
	switch {
	case step%25 == 7: // the change of the file is enough
	case step%3 == 1 && step > reloadSubscribed:
		output, err := exec.Command(r.publisher, "-p", fmt.Sprint(r.broker), "-t", "edge-infer/gate/reload/set", "-m", "PRESS").CombinedOutput()
		require.NoError(r.t, err, "%s", output)
	default:
		require.NoError(r.t, r.Command.Process.Signal(syscall.SIGHUP))
	}
}

// reload makes a step's change, or its mistake, and waits until the daemon has said so.
func (r *reloader) reload(step int) {
	until := func(what string, count int) {
		require.Eventually(r.t, func() bool { return strings.Count(r.Stderr.String(), what) >= count }, programtest.Patience, 5*time.Millisecond,
			"step %d: %s: %s", step, what, r.Stderr)
	}
	if step%5 == 4 {
		mistake := mistakes[step/5%len(mistakes)]
		text := mistake.text
		if !strings.HasPrefix(text, "cameras: [{name: a, uri: demo\n") {
			text = r.common + "thermal: {hysteresis: 4}\n" + text
		}
		before := strings.Count(r.Stderr.String(), mistake.want)
		r.put(text)
		r.ask(step)
		until(mistake.want, before+1)
		return
	}
	r.put(r.configuration(step))
	r.ask(step)
	r.changes++
	until(`msg="configuration changed"`, r.changes)
}

// held asks the daemon what it owns, after a collection.
func (r *reloader) held() (h holdings) {
	client := programtest.Visitor(r.t)
	code, profile := programtest.Get(r.t, client, r.page+"debug/pprof/heap?gc=1&debug=1")
	require.Equal(r.t, 200, code)
	heap := regexp.MustCompile(`(?m)^# HeapAlloc = (\d+)$`).FindSubmatch(profile)
	require.NotNil(r.t, heap)
	var err error
	h.heap, err = strconv.Atoi(string(heap[1]))
	require.NoError(r.t, err)
	code, profile = programtest.Get(r.t, client, r.page+"debug/pprof/goroutine?debug=1")
	require.Equal(r.t, 200, code)
	h.stacks = string(profile)
	_, err = fmt.Sscanf(h.stacks, "goroutine profile: total %d", &h.goroutines) // the metrics' own number counts their collectors' goroutines
	require.NoError(r.t, err)
	code, text := programtest.Get(r.t, client, r.page+"metrics")
	require.Equal(r.t, 200, code)
	targets := map[string]*int{
		"process_open_fds": &h.files, "process_resident_memory_bytes": &h.resident,
		"edge_infer_frame_memory_bytes": &h.frames, "edge_infer_camera_running": &h.cameras,
	}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), " ")
		name, _, _ = strings.Cut(name, "{")
		if target := targets[name]; target != nil {
			number, err := strconv.ParseFloat(value, 64)
			require.NoError(r.t, err)
			*target += int(number)
		}
	}
	require.NotZero(r.t, h.files*h.resident, h)
	return h
}

// settled is what the daemon owns with the configuration of the beginning, once every camera runs. What comes and goes, such as a
// connection of the broker's, is left out.
func (r *reloader) settled() (h holdings) {
	const readings = 10
	r.reload(reloadRound)
	for deadline := time.Now().Add(programtest.Patience); h.cameras != 3 || h.frames == 0; h = r.held() {
		require.True(r.t, time.Now().Before(deadline), "%v: %s", h, r.Stderr)
	}
	for range readings {
		now := r.held()
		if now.goroutines < h.goroutines {
			h.goroutines, h.stacks = now.goroutines, now.stacks
		}
		h.files, h.heap, h.frames = min(h.files, now.files), min(h.heap, now.heap), min(h.frames, now.frames)
	}
	return h
}

// mistakes are configurations of which nothing may come into force, and what is said of them.
var mistakes = []struct{ text, want string }{
	{"detekt: {}\n", `unknown key \"detekt\", did you mean \"detect\"?`},
	{"cameras: [{name: a, uri: 'demo?fps=0'}]\n", "camera a: parse demo?fps=0"},
	{"cameras: [{name: a, uri: demo}, {name: a, uri: demo}]\n", "is used twice"},
	{"cameras: [{name: a, uri: demo, analytics: {zones: [{name: yard, points: [{x: 0, y: 0}]}]}}]\n", `zone \"yard\"`},
	{"detect: {classes: [unicorn]}\ncameras: [{name: a, uri: demo}]\n", `label \"unicorn\" is not one of the model's`},
	{"detect: {confidence: 7}\ncameras: [{name: a, uri: demo}]\n", "must be over 0 and under 1"},
	{"cameras: [{name: a, uri: demo\n", "line 1"},
}

// TestReloadsLeakNothing has a daemon change its cameras, zones and thresholds over and over, and compares what it owns before and after.
func TestReloadsLeakNothing(t *testing.T) {
	t.Parallel()
	count := 30
	if text := os.Getenv(reloadsEnvironment); text != "" {
		var err error
		count, err = strconv.Atoi(text)
		require.NoError(t, err)
	}
	r := startReloader(t)
	before := r.settled()
	t.Logf("after %d changes: %v", r.changes, before)
	step := reloadSubscribed
	for last := step + count; step < last; step++ {
		if step%reloadRound == 0 {
			continue
		}
		r.reload(step)
		if step%100 == 0 {
			t.Logf("after step %d: %v", step, r.held())
		}
	}
	after := r.settled()
	for deadline := time.Now().Add(programtest.Patience); after.goroutines > before.goroutines || after.files > before.files ||
		after.heap > before.heap+staysBehind*r.changes; {
		if time.Now().After(deadline) {
			require.FailNow(t, "goroutines, files or memory stay behind", "before %v, after %v\nbefore: %s\nafter: %s", before, after,
				before.stacks, after.stacks)
		}
		after = r.held()
	}
	t.Logf("after %d steps, %d of them changes: %v", step, r.changes, after)
	frames := capture.DefaultBuffers * 3 * (160*120 + 320*240 + 160*120)
	require.LessOrEqual(t, after.frames, frames, "cameras that are gone hold frames")
	require.Equal(t, r.changes, strings.Count(r.Stderr.String(), `msg="configuration changed"`), "nothing of a mistake comes into force")
	require.NotContains(t, r.Stderr.String(), "restarting")
	require.NoError(t, r.Command.Process.Signal(syscall.SIGTERM))
	require.NoError(t, <-r.Done)
}

// BenchmarkReload shows what a reload takes, and by how much the resident memory has grown for each.
func BenchmarkReload(b *testing.B) {
	r := startReloader(b)
	before := r.settled()
	step := reloadSubscribed
	for b.Loop() {
		r.reload(step)
		step++
	}
	after := r.settled()
	b.Logf("before %v, after %v", before, after)
	b.ReportMetric(float64(after.resident-before.resident)/float64(b.N), "resident-B/op")
}

// TestMemoryGoesBack finds a daemon's memory given back when its start, and when a change of its configuration, has settled.
func TestMemoryGoesBack(t *testing.T) {
	t.Parallel()
	r := startReloader(t)
	given := func() int { // how often
		code, profile := programtest.Get(t, programtest.Visitor(t), r.page+"debug/pprof/heap?debug=1")
		require.Equal(t, 200, code)
		forced := regexp.MustCompile(`(?m)^# NumForcedGC = (\d+)$`).FindSubmatch(profile)
		require.NotNil(t, forced)
		count, err := strconv.Atoi(string(forced[1]))
		require.NoError(t, err)
		return count
	}
	again := func(before int) {
		for deadline := time.Now().Add(programtest.Patience + process.SettleTime); given() <= before; time.Sleep(time.Second) {
			require.True(t, time.Now().Before(deadline), "%s", r.Stderr)
		}
	}
	again(0)
	before := given()
	r.reload(reloadRound)
	again(before)
}

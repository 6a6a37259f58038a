package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const twoCameras = `mqtt: {url: "off"}
cameras:
  - {name: a, uri: "demo?width=320&height=240&fps=15"}
  - {name: b, uri: "demo?width=320&height=240&fps=15&seed=2"}
`

// showing reads frames until each of the cameras has shown itself.
func showing(t *testing.T, p *program, cameras ...string) {
	missing := map[string]bool{}
	for _, camera := range cameras {
		missing[camera] = true
	}
	for len(missing) > 0 {
		f, more := p.frame()
		require.True(t, more, p.stderr)
		delete(missing, f.Camera)
	}
}

func TestReload(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "edge-infer.yaml")
	write := func(text string) { require.NoError(t, os.WriteFile(path, []byte(text), 0o600)) }
	logged := func(p *program, text string) {
		require.Eventually(t, func() bool { return strings.Contains(p.stderr.String(), text) }, patience, 20*time.Millisecond, "%s", p.stderr)
	}
	write(twoCameras)
	p := start(t, "--config", path, "--json")
	showing(t, p, "a", "b")

	write(strings.Replace(twoCameras, "name: a", "name: c", 1)) // the file's change is noticed
	showing(t, p, "c", "b")
	logged(p, `msg="configuration changed" cameras=2 undisturbed=1`)

	write(strings.Replace(twoCameras, "fps=15&seed=2", "fps=0&seed=2", 1)) // nothing of a bad file comes into force
	require.NoError(t, p.command.Process.Signal(syscall.SIGHUP))
	logged(p, "configuration kept as it is")
	showing(t, p, "c", "b")

	write("detekt: {}\n")
	logged(p, `unknown key`)
	showing(t, p, "c", "b")

	// A zone, an interval and thresholds are new to the frame loop, not to the camera: its numbers go on.
	changed := strings.Replace(twoCameras, "name: a", "name: c", 1)
	changed = strings.Replace(changed, "fps=15\"}", `fps=15", analytics: {zones: [{name: yard, points: [{x: 0, y: 0}, {x: 1, y: 0}, {x: 0, y: 1}]}]}}`, 1)
	changed = strings.Replace(changed, "seed=2\"}", "seed=2\", interval: 2}", 1)
	number := func() uint64 { // of the camera's next frame
		for {
			if f, more := p.frame(); !more || f.Camera == "c" {
				require.True(t, more)
				return f.Seq
			}
		}
	}
	before := number()
	write(changed + "detect: {confidence: 0.5}\n")
	logged(p, `msg="configuration changed" cameras=2 undisturbed=2`)
	for range 10 {
		after := number()
		require.Greater(t, after, before)
		before = after
	}

	write(twoCameras + "engine: {threads: 1}\n") // cannot be changed in place
	logged(p, "restarting")
	p.rest() // the run so far ends with its statistics
	showing(t, p, "a", "b")
	require.NoError(t, p.stop(syscall.SIGTERM))
}

// reloadsEnvironment is how many times TestReloadsLeakNothing reloads; few without it.
const reloadsEnvironment = "EDGE_INFER_RELOADS"

// holdings is what a process has taken of the machine, as its own metrics say.
type holdings struct{ goroutines, files, resident, heap float64 }

func (h holdings) String() string {
	const mebibyte = 1 << 20
	return fmt.Sprintf("%.0f goroutines, %.0f files, %.1f MiB resident, %.1f MiB heap", h.goroutines, h.files, h.resident/mebibyte, h.heap/mebibyte)
}

func held(t *testing.T, page string) (h holdings) {
	code, text := get(t, visitor(t), page+"metrics")
	require.Equal(t, 200, code)
	values := map[string]*float64{
		"go_goroutines": &h.goroutines, "process_open_fds": &h.files, "process_resident_memory_bytes": &h.resident, "go_memstats_heap_inuse_bytes": &h.heap,
	}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), " ")
		if target := values[name]; target != nil {
			var err error
			*target, err = strconv.ParseFloat(value, 64)
			require.NoError(t, err)
		}
	}
	require.NotZero(t, h.goroutines*h.files*h.resident*h.heap, h)
	return h
}

// mistakes are configurations of which nothing may come into force, and what is said of them.
var mistakes = []struct{ text, want string }{
	{"detekt: {}\n", `unknown key \"detekt\", did you mean \"detect\"?`},
	{"cameras: [{name: a, uri: 'demo?fps=0'}]\n", "camera a: parse demo?fps=0"},
	{"cameras: [{name: a, uri: demo}, {name: a, uri: demo}]\n", "is used twice"},
	{"cameras: [{name: a, uri: demo, analytics: {zones: [{name: yard, points: [{x: 0, y: 0}]}]}}]\n", `zone \"yard\"`},
	{"detect: {labels: [unicorn]}\ncameras: [{name: a, uri: demo}]\n", `label \"unicorn\" is not one of the model's`},
	{"detect: {confidence: 7}\ncameras: [{name: a, uri: demo}]\n", "must be over 0 and at most 1"},
	{"cameras: [{name: a, uri: demo\n", "line 1"},
}

// TestReloadsLeakNothing has a daemon change its cameras, zones and thresholds over and over, by each of the ways to ask for it, with mistakes in
// between, and compares what it holds before and after.
func TestReloadsLeakNothing(t *testing.T) {
	t.Parallel()
	count := 30
	if text := os.Getenv(reloadsEnvironment); text != "" {
		var err error
		count, err = strconv.Atoi(text)
		require.NoError(t, err)
	}
	publisher, broker := tool(t, "mosquitto_pub"), freePort(t)
	path := filepath.Join(t.TempDir(), "edge-infer.yaml")
	common := fmt.Sprintf("device: gate\nmqtt: {url: embedded, listen: '127.0.0.1:%d'}\nweb: {listen: '127.0.0.1:0'}\n", broker)
	configuration := func(step int) string {
		text := common + fmt.Sprintf("detect: {confidence: 0.%d, iou: 0.%d}\nthermal: {margin: %d}\ncameras:\n", 3+step%3, 4+step%2, step%4)
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
	put := func(text string) { // in one step, as editors do: the daemon looks at the file by itself
		require.NoError(t, os.WriteFile(path+".part", []byte(text), 0o600))
		require.NoError(t, os.Rename(path+".part", path))
	}
	put(configuration(0))
	p := start(t, "--config", path)
	page := p.printedAfter("web page at ")
	go func() { // nobody reads the rest
		for range p.lines {
			continue
		}
	}()
	changes := 0
	until := func(what string, done func(log string) bool) {
		require.Eventually(t, func() bool { return done(p.stderr.String()) }, patience, 5*time.Millisecond, "%s: %s", what, p.stderr)
	}
	ask := func(step int) {
		switch {
		case step%25 == 7: // the change of the file is enough
		case step%3 == 1 && step > 12: // the daemon has subscribed by then
			output, err := exec.Command(publisher, "-p", fmt.Sprint(broker), "-t", "edge-infer/gate/reload/set", "-m", "PRESS").CombinedOutput()
			require.NoError(t, err, "%s", output)
		default:
			require.NoError(t, p.command.Process.Signal(syscall.SIGHUP))
		}
	}
	reload := func(step int) {
		if step%5 == 4 {
			mistake := mistakes[step/5%len(mistakes)]
			text := mistake.text
			if !strings.HasPrefix(text, "cameras: [{name: a, uri: demo\n") {
				text = common + "thermal: {hysteresis: 4}\n" + text
			}
			before := strings.Count(p.stderr.String(), mistake.want)
			put(text)
			ask(step)
			until(mistake.want, func(log string) bool { return strings.Count(log, mistake.want) > before })
			return
		}
		put(configuration(step))
		ask(step)
		changes++
		until(fmt.Sprint("change ", step), func(log string) bool { return strings.Count(log, `msg="configuration changed"`) >= changes })
	}
	const round = 210 // all combinations; the first and the last configuration are the same
	step := 1
	for ; step < 12; step++ {
		reload(step)
	}
	back := func() holdings {
		reload(round) // the configuration of the beginning
		time.Sleep(200 * time.Millisecond)
		return held(t, page)
	}
	before := back()
	t.Logf("after %d reloads: %v", changes, before)
	for last := step + count; step < last; step++ {
		if step%round == 0 {
			continue
		}
		reload(step)
		if step%100 == 0 {
			t.Logf("after step %d: %v", step, held(t, page))
		}
	}
	after := back()
	require.Eventually(t, func() bool {
		after = held(t, page)
		return after.goroutines <= before.goroutines && after.files <= before.files
	}, patience, 200*time.Millisecond, "before %v", before)
	t.Logf("after %d steps, %d of them changes: %v", step, changes, after)
	require.Less(t, after.resident, before.resident+32<<20, "before %v, after %v", before, after)
	require.Equal(t, changes, strings.Count(p.stderr.String(), `msg="configuration changed"`), "nothing of a mistake comes into force")
	require.NotContains(t, p.stderr.String(), "restarting")
	require.NoError(t, p.command.Process.Signal(syscall.SIGTERM))
	require.NoError(t, <-p.done)
}

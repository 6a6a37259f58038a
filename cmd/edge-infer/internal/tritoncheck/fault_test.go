package tritoncheck

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
)

// rate is of the camera in the runs with faults, in frames a second.
const rate = 10

// watched is a running program whose frames are noted with the time at which they were printed.
type watched struct {
	*programtest.Program
	t      *testing.T
	frames []frame
}

type frame struct {
	seq      uint64
	captured time.Time
	printed  time.Time
}

// watch starts the program on servers.
func watch(t *testing.T, engine string, flags ...string) *watched {
	p := programtest.Start(t, append([]string{
		"--camera", fmt.Sprintf("demo?width=320&height=240&fps=%d", rate), "--mqtt", "off", "--json", "--engine", "triton=" + engine,
	}, flags...)...)
	w := &watched{Program: p, t: t}
	w.more(3 * rate)
	return w
}

// more waits for so many frames.
func (w *watched) more(n int) {
	for range n {
		f, more := w.Frame()
		require.True(w.t, more, w.Stderr)
		w.frames = append(w.frames, frame{f.Seq, f.Time, time.Now()})
	}
}

// during notes the frames of so long.
func (w *watched) during(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		select {
		case line, more := <-w.Lines:
			require.True(w.t, more, w.Stderr)
			var f programtest.Frame
			require.NoError(w.t, json.Unmarshal([]byte(line), &f))
			w.frames = append(w.frames, frame{f.Seq, f.Time, time.Now()})
		case <-time.After(time.Until(end)):
		}
	}
}

// since are the frames that were printed from then on.
func (w *watched) since(when time.Time) []frame {
	for i := range w.frames {
		if w.frames[i].printed.After(when) {
			return w.frames[i:]
		}
	}
	return nil
}

// gap is the longest time without a frame from then on.
func (w *watched) gap(when time.Time) (longest time.Duration) {
	last := when
	for _, f := range w.since(when) {
		longest = max(longest, f.printed.Sub(last))
		last = f.printed
	}
	return longest
}

// end stops the program and accounts for every frame that the camera gave.
func (w *watched) end() programtest.Totals {
	require.NoError(w.t, w.Command.Process.Signal(syscall.SIGTERM))
	frames, stats := w.Rest()
	for _, f := range frames {
		w.frames = append(w.frames, frame{f.Seq, f.Time, time.Now()})
	}
	require.NoError(w.t, w.Wait(), w.Stderr)
	c := stats.Cameras[0]
	require.LessOrEqual(w.t, c.Captured-c.Inferred-c.Dropped-c.Failed, uint64(3), "in flight at the end: %+v", c)
	return stats
}

// captured is how many frames a second the camera gave from the first frame to the last, whatever became of those between.
func (w *watched) captured() float64 {
	first, last := w.frames[0], w.frames[len(w.frames)-1]
	return float64(last.seq-first.seq) / last.captured.Sub(first.captured).Seconds()
}

// outage is how long each fault lasts.
const outage = 5 * time.Second

// Each fault begins while the program runs and ends again. The camera never notices; frames come again by themselves; with a second server,
// or an engine here that stands by, none is lost.
func TestFaults(t *testing.T) {
	repository := exported(t)
	fault := filepath.Join(repository, "demo/fault.json")
	write := func(text string) func(*testing.T, *server) {
		return func(t *testing.T, _ *server) { require.NoError(t, os.WriteFile(fault, []byte(text), 0o600)) }
	}
	heal := func(t *testing.T, _ *server) { require.NoError(t, os.Remove(fault)) }
	kill := func(_ *testing.T, s *server) { s.kill() }
	run := func(t *testing.T, s *server) { s.run(t) }
	stop := func(t *testing.T, s *server) { s.signal(t, syscall.SIGSTOP) }
	goOn := func(t *testing.T, s *server) { s.signal(t, syscall.SIGCONT) }
	for _, c := range []struct {
		name       string
		begin, end func(*testing.T, *server)
		second     bool // a second server
		local      bool // an engine here stands by
	}{
		{name: "killed", begin: kill, end: run},
		{name: "stopped", begin: stop, end: goOn},
		{name: "slow", begin: write(`{"delay": 3}`), end: heal},
		{name: "wrong shapes", begin: write(`{"cut": true}`), end: heal},
		{name: "killed, one here stands by", begin: kill, end: run, local: true},
		{name: "stopped, one here stands by", begin: stop, end: goOn, local: true},
		{name: "one of two killed", begin: kill, end: run, second: true},
		{name: "one of two stopped", begin: stop, end: goOn, second: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := start(t, repository)
			engine, flags := s.at("grpc", "demo"), []string{}
			if c.second {
				engine += "," + start(t, repository).at("grpc", "demo")
			}
			if c.local {
				flags = append(flags, "--remote-fallback", "local", "--model", "demo")
			}
			w := watch(t, engine, flags...)
			began := time.Now()
			c.begin(t, s)
			w.during(outage)
			over := w.gap(began)
			if !c.second && !c.local {
				require.Empty(t, w.since(began.Add(outage/2)), "nobody serves")
			}
			c.end(t, s)
			ended := time.Now()
			back := "server resumed"
			if c.local {
				back = "inference server in use again"
			}
			await(t, w, back)
			returned := time.Since(ended)
			w.more(2 * rate)
			if !c.second && !c.local { // the fault is in it
				over = w.gap(began)
			}
			stats := w.end()
			t.Logf("captured %.3f of %d frames a second; longest time without a frame %v; back after %v; failed %d of %d",
				w.captured(), rate, over.Round(time.Millisecond), returned.Round(time.Millisecond), stats.Cameras[0].Failed,
				stats.Cameras[0].Captured)
			require.InEpsilon(t, rate, w.captured(), 0.01)
			if c.second || c.local {
				require.Zero(t, stats.Cameras[0].Failed)
			} else {
				require.Positive(t, stats.Cameras[0].Failed)
			}
		})
	}
}

// await reads frames until the text has been logged.
func await(t *testing.T, w *watched, text string) {
	t.Helper()
	for end := time.Now().Add(programtest.Patience); !logged(w, text); w.during(10 * time.Millisecond) {
		require.True(t, time.Now().Before(end), "%s: %s", text, w.Stderr)
	}
}

func logged(w *watched, text string) bool { return strings.Contains(w.Stderr.String(), text) }

// A server that looks for new versions takes the next one under way; no frame is lost.
func TestFaultVersionSwapped(t *testing.T) {
	repository := exported(t)
	s := start(t, repository, "--model-control-mode", "poll", "--repository-poll-secs", "1")
	w := watch(t, s.at("grpc", "demo"), "--remote-timeout", "5s")
	began := time.Now()
	edge(t, "export", "triton", "--model", "demo", "--engine", "onnxruntime=cpu", "--repository", repository)
	await(t, w, "model version changed on the server")
	took := time.Since(began)
	w.more(2 * rate)
	stats := w.end()
	t.Logf("captured %.3f of %d frames a second; the new version answers %v after it was written; longest time without a frame %v; failed %d of %d",
		w.captured(), rate, took.Round(time.Millisecond), w.gap(began).Round(time.Millisecond), stats.Cameras[0].Failed,
		stats.Cameras[0].Captured)
	require.Contains(t, w.Stderr.String(), "was=1 is=2")
	require.InEpsilon(t, rate, w.captured(), 0.01)
	require.Zero(t, stats.Cameras[0].Failed)
}

// A certificate of somebody else's is a server that is away, with the reason in the log; the right one again is a server that is healthy.
func TestFaultTLS(t *testing.T) {
	s := start(t, exported(t))
	ours, others := authority(t), authority(t)
	proxy := newProxy(t, fmt.Sprintf("127.0.0.1:%d", s.grpc), ours)
	t.Setenv("EDGE_INFER_REMOTE_CA", ours.file)
	w := watch(t, "grpcs://"+proxy.address+"/demo")
	began := time.Now()
	proxy.present(others)
	w.during(outage)
	require.Empty(t, w.since(began.Add(outage/2)))
	require.Contains(t, w.Stderr.String(), "x509: certificate signed by unknown authority")
	proxy.present(ours)
	ended := time.Now()
	await(t, w, "server resumed")
	returned := time.Since(ended)
	w.more(2 * rate)
	stats := w.end()
	t.Logf("captured %.3f of %d frames a second; back after %v; failed %d of %d", w.captured(), rate, returned.Round(time.Millisecond),
		stats.Cameras[0].Failed, stats.Cameras[0].Captured)
	require.InEpsilon(t, rate, w.captured(), 0.01)
	require.Positive(t, stats.Cameras[0].Failed)
}

// soakEnvironment is how long the run takes whose frames are counted, as Go writes durations.
const soakEnvironment = "EDGE_INFER_TEST_TRITON_SOAK"

// In a long run with a server that is killed every minute every frame is counted: done, displaced by a newer one, or failed.
func TestNoFrameIsLostUncounted(t *testing.T) {
	long := 20 * time.Second
	if text := os.Getenv(soakEnvironment); text != "" {
		var err error
		long, err = time.ParseDuration(text)
		require.NoError(t, err)
	}
	s := start(t, exported(t))
	w := watch(t, s.at("grpc", "demo"))
	kills := 0
	for end := time.Now().Add(long); time.Now().Before(end); kills++ {
		w.during(min(time.Minute, long/2))
		s.kill()
		w.during(time.Second)
		s.run(t)
	}
	stats := w.end()
	c := stats.Cameras[0]
	t.Logf("%v with %d kills: captured %d (%.3f a second), done %d, displaced %d, failed %d, in flight at the end %d, printed %d, lines dropped %d",
		long, kills, c.Captured, w.captured(), c.Inferred, c.Dropped, c.Failed, c.Captured-c.Inferred-c.Dropped-c.Failed, len(w.frames),
		stats.Dropped)
	require.EqualValues(t, c.Inferred, uint64(len(w.frames))+stats.Dropped, "every frame that was done is printed or counted as dropped")
}

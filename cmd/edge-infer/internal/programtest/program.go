package programtest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Program is one running edge-infer.
type Program struct {
	Command *exec.Cmd
	Lines   chan string // of standard output
	Stderr  *Buffer
	Done    chan error // how it ended

	t testing.TB
}

// Buffer keeps what a program writes.
type Buffer struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

// Write implements io.Writer.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.text.Write(p)
}

// String is all so far.
func (b *Buffer) String() string {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.text.String()
}

// raceOptions keeps a program that the race detector watches from waiting a second at its end, for reports on threads that still run.
const raceOptions = "GORACE=atexit_sleep_ms=20 "

// Command is edge-infer with those arguments and directories of its own.
func Command(t testing.TB, args ...string) *exec.Cmd { return CommandWith(t, nil, args...) }

// CommandWith is Command with more environment variables.
func CommandWith(t testing.TB, environment []string, args ...string) *exec.Cmd {
	c := exec.CommandContext(t.Context(), os.Args[0], args...)
	home := t.TempDir()
	c.Env = append(os.Environ(), runAsProgram+"=1", "HOME="+home, "XDG_STATE_HOME="+home, "XDG_CACHE_HOME="+home, "STATE_DIRECTORY=",
		raceOptions+os.Getenv("GORACE"))
	c.Env = append(c.Env, environment...)
	return c
}

// Start runs edge-infer in the background; the test's end kills it.
func Start(t testing.TB, args ...string) *Program { return StartWith(t, nil, args...) }

// StartWith is Start with more environment variables.
func StartWith(t testing.TB, environment []string, args ...string) *Program {
	p := &Program{
		t: t, Command: CommandWith(t, environment, args...), Lines: make(chan string, 10000), Stderr: &Buffer{}, Done: make(chan error, 1),
	}
	stdout, err := p.Command.StdoutPipe()
	require.NoError(t, err)
	p.Command.Stderr = p.Stderr
	require.NoError(t, p.Command.Start())
	go func() {
		defer close(p.Lines)
		lines := bufio.NewScanner(stdout)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			p.Lines <- lines.Text()
		}
		p.Done <- p.Command.Wait()
	}()
	t.Cleanup(func() {
		_ = p.Command.Process.Kill()
		for range p.Lines {
			continue
		}
	})
	return p
}

// Line waits for the next line of standard output; false at its end.
func (p *Program) Line() (string, bool) {
	select {
	case line, more := <-p.Lines:
		return line, more
	case <-time.After(Patience):
		require.FailNow(p.t, "no output", "standard error: %s", p.Stderr)
		return "", false
	}
}

// PrintedAfter waits for a line of standard output that has the text in it, and gives what follows.
func (p *Program) PrintedAfter(text string) string {
	for {
		line, more := p.Line()
		require.True(p.t, more, p.Stderr)
		if _, rest, found := strings.Cut(line, text); found {
			return rest
		}
	}
}

// Logged waits until the text stands on standard error.
func (p *Program) Logged(text string) {
	p.t.Helper()
	require.Eventually(p.t, func() bool { return strings.Contains(p.Stderr.String(), text) }, Patience, 10*time.Millisecond, "%s: %s", text,
		p.Stderr)
}

// Discard reads what is printed from now on, so that nobody else has to.
func (p *Program) Discard() {
	go func() {
		for range p.Lines {
			continue
		}
	}()
}

// Frame is one JSON line of run.
type Frame struct {
	Camera     string            `json:"camera"`
	Seq        uint64            `json:"seq"`
	Time       time.Time         `json:"time"`
	Width      int               `json:"width"`
	Height     int               `json:"height"`
	Detections []json.RawMessage `json:"detections"`
	Stats      json.RawMessage   `json:"stats"`
}

// Frame waits for the next line that is a frame; false when the statistics come, which are left in the result.
func (p *Program) Frame() (Frame, bool) {
	line, more := p.Line()
	require.True(p.t, more, "output ended without statistics: %s", p.Stderr)
	var f Frame
	require.NoError(p.t, json.Unmarshal([]byte(line), &f), line)
	return f, f.Stats == nil
}

// Rest reads everything up to the statistics.
func (p *Program) Rest() (frames []Frame, stats Totals) {
	for {
		f, more := p.Frame()
		if !more {
			require.NoError(p.t, json.Unmarshal(f.Stats, &stats))
			return frames, stats
		}
		frames = append(frames, f)
	}
}

// Totals is what a test reads of the statistics line.
type Totals struct {
	Cameras []struct {
		Captured, Inferred, Displaced, Reconnects, Failed uint64
		Hardware                                          string
	}
	MQTT struct {
		Detections struct{ Offered, Delivered, Dropped, Queued uint64 }
	}
	Seconds    float64
	FirstFrame float64 `json:"first_frame_ms"`
	Dropped    uint64  `json:"lines_dropped"`
}

// Stop sends a signal and waits for the end, reading what is still printed.
func (p *Program) Stop(signal syscall.Signal) error {
	require.NoError(p.t, p.Command.Process.Signal(signal))
	return p.Wait()
}

// Wait waits for the end, reading what is still printed.
func (p *Program) Wait() error {
	deadline := time.After(Patience)
	for {
		select {
		case _, more := <-p.Lines:
			if !more {
				return <-p.Done
			}
		case <-deadline:
			require.FailNow(p.t, "the program does not end", "standard error: %s", p.Stderr)
		}
	}
}

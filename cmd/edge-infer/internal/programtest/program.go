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

	"github.com/edge-infer/edge-infer/mqtt/ledger"
)

// Program is a running edge-infer process.
type Program struct {
	Command *exec.Cmd
	Lines   chan string // of standard output
	Stderr  *Buffer
	Done    chan error // result of the process

	t testing.TB
}

// Buffer collects output. It is safe for concurrent use.
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

// String returns all output so far.
func (b *Buffer) String() string {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.text.String()
}

// raceOptions avoids the race detector's wait of one second at the end of the process.
const raceOptions = "GORACE=atexit_sleep_ms=20 "

// Command returns a command that runs edge-infer with its own home directory.
func Command(t testing.TB, args ...string) *exec.Cmd { return CommandWith(t, nil, args...) }

// CommandWith is Command with additional environment variables.
func CommandWith(t testing.TB, environment []string, args ...string) *exec.Cmd {
	c := exec.CommandContext(t.Context(), os.Args[0], args...)
	home := t.TempDir()
	c.Env = append(os.Environ(), runAsProgram+"=1", "HOME="+home, "XDG_STATE_HOME="+home, "XDG_CACHE_HOME="+home, "STATE_DIRECTORY=",
		raceOptions+os.Getenv("GORACE"))
	c.Env = append(c.Env, environment...)
	return c
}

// Output runs edge-infer, which must succeed, and returns its standard output.
func Output(t testing.TB, args ...string) []byte {
	t.Helper()
	return OutputWith(t, nil, args...)
}

// OutputWith is Output with additional environment variables.
func OutputWith(t testing.TB, environment []string, args ...string) []byte {
	t.Helper()
	c := CommandWith(t, environment, args...)
	var stderr bytes.Buffer
	c.Stderr = &stderr
	output, err := c.Output()
	require.NoError(t, err, "%s: %s%s", args, output, &stderr)
	return output
}

// Start runs edge-infer in the background and kills it at the end of the test.
func Start(t testing.TB, args ...string) *Program { return StartWith(t, nil, args...) }

// StartWith is Start with additional environment variables.
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

// Line waits for the next line of standard output; false at the end.
func (p *Program) Line() (string, bool) {
	select {
	case line, more := <-p.Lines:
		return line, more
	case <-time.After(Patience):
		require.FailNow(p.t, "no output", "standard error: %s", p.Stderr)
		return "", false
	}
}

// PrintedAfter waits for a line of standard output that contains the text, and returns the rest of the line.
func (p *Program) PrintedAfter(text string) string {
	for {
		line, more := p.Line()
		require.True(p.t, more, p.Stderr)
		if _, rest, found := strings.Cut(line, text); found {
			return rest
		}
	}
}

// Logged waits until standard error contains the text.
func (p *Program) Logged(text string) {
	p.t.Helper()
	require.Eventually(p.t, func() bool { return strings.Contains(p.Stderr.String(), text) }, Patience, 10*time.Millisecond, "%s: %s", text,
		p.Stderr)
}

// Discard discards further lines of standard output.
func (p *Program) Discard() {
	go func() {
		for range p.Lines {
			continue
		}
	}()
}

// Frame is one line of run --json.
type Frame struct {
	Camera     string            `json:"camera"`
	Seq        uint64            `json:"seq"`
	Time       time.Time         `json:"time"`
	Width      int               `json:"width"`
	Height     int               `json:"height"`
	Detections []json.RawMessage `json:"detections"`
	Stats      json.RawMessage   `json:"stats"`
}

// Frame waits for the next line; false if it holds the final statistics, which are in the result.
func (p *Program) Frame() (Frame, bool) {
	line, more := p.Line()
	require.True(p.t, more, "output ended without statistics: %s", p.Stderr)
	var f Frame
	require.NoError(p.t, json.Unmarshal([]byte(line), &f), line)
	return f, f.Stats == nil
}

// Rest reads all frames up to the statistics.
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

// Totals is the statistics line of run --json.
type Totals struct {
	Cameras []struct {
		Captured, Inferred, Reconnects uint64
		Dropped                        uint64 `json:"dropped_newer"`
		Failed                         uint64 `json:"dropped_error"`
		Hardware                       string
	}
	MQTT struct {
		Detections, Events ledger.Account
	}
	Seconds    float64
	FirstFrame float64 `json:"first_frame_ms"`
	Dropped    uint64  `json:"lines_dropped"`
}

// Stop sends a signal and waits for the end of the process.
func (p *Program) Stop(signal syscall.Signal) error {
	require.NoError(p.t, p.Command.Process.Signal(signal))
	return p.Wait()
}

// Wait waits for the end of the process, discarding its output.
func (p *Program) Wait() error {
	deadline := time.After(Patience)
	for {
		select {
		case _, more := <-p.Lines:
			if !more {
				return <-p.Done
			}
		case <-deadline:
			require.FailNow(p.t, "the program has not ended", "standard error: %s", p.Stderr)
		}
	}
}

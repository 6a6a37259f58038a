package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// runAsProgram makes the test binary behave as edge-infer itself, so that tests talk to a real process.
const runAsProgram = "EDGE_INFER_TEST_PROGRAM"

// patience is how long a test waits for what must come, on a machine that is busy with other tests.
const patience = 60 * time.Second

func TestMain(m *testing.M) {
	if os.Getenv(runAsProgram) != "" {
		os.Exit(execute(os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(withShared(m))
}

// sharedFolder holds what several tests use and none changes: libraries that were compiled, pictures that were drawn.
var (
	sharedFolder string
	sharedOnce   sync.Map // of a name, what makes it
)

func withShared(m *testing.M) (status int) {
	var err error
	if sharedFolder, err = os.MkdirTemp("", "edge-infer-test-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(sharedFolder)
	return m.Run()
}

// shared gives a folder that the first test which asks for that name has filled.
func shared(t *testing.T, name string, fill func(folder string) error) (folder string) {
	folder = filepath.Join(sharedFolder, name)
	once, _ := sharedOnce.LoadOrStore(name, sync.OnceValue(func() error {
		if err := os.Mkdir(folder, 0o755); err != nil {
			return err
		}
		return fill(folder)
	}))
	require.NoError(t, once.(func() error)())
	return folder
}

// program is one running edge-infer.
type program struct {
	t       *testing.T
	command *exec.Cmd
	lines   chan string
	stderr  *lockedBuffer
	done    chan error
}

type lockedBuffer struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.text.String()
}

// raceOptions keeps a program that the race detector watches from waiting a second at its end, for reports on threads that still run.
const raceOptions = "GORACE=atexit_sleep_ms=20 "

func command(t *testing.T, args ...string) *exec.Cmd { return commandWith(t, nil, args...) }

// commandWith is command with more environment variables.
func commandWith(t *testing.T, environment []string, args ...string) *exec.Cmd {
	c := exec.CommandContext(t.Context(), os.Args[0], args...)
	home := t.TempDir()
	c.Env = append(os.Environ(), runAsProgram+"=1", "HOME="+home, "XDG_STATE_HOME="+home, "XDG_CACHE_HOME="+home, "STATE_DIRECTORY=",
		raceOptions+os.Getenv("GORACE"))
	c.Env = append(c.Env, environment...)
	return c
}

// start runs edge-infer in the background; the test's end kills it.
func start(t *testing.T, args ...string) *program { return startWith(t, nil, args...) }

// startWith is start with more environment variables.
func startWith(t *testing.T, environment []string, args ...string) *program {
	p := &program{t: t, command: commandWith(t, environment, args...), lines: make(chan string, 10000), stderr: &lockedBuffer{}, done: make(chan error, 1)}
	stdout, err := p.command.StdoutPipe()
	require.NoError(t, err)
	p.command.Stderr = p.stderr
	require.NoError(t, p.command.Start())
	go func() {
		defer close(p.lines)
		lines := bufio.NewScanner(stdout)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			p.lines <- lines.Text()
		}
		p.done <- p.command.Wait()
	}()
	t.Cleanup(func() {
		_ = p.command.Process.Kill()
		for range p.lines {
			continue
		}
	})
	return p
}

// line waits for the next line of standard output; false at its end.
func (p *program) line() (string, bool) {
	select {
	case line, more := <-p.lines:
		return line, more
	case <-time.After(patience):
		require.FailNow(p.t, "no output", "standard error: %s", p.stderr)
		return "", false
	}
}

// frame is one JSON line of run.
type frame struct {
	Camera     string          `json:"camera"`
	Seq        uint64          `json:"seq"`
	Width      int             `json:"width"`
	Height     int             `json:"height"`
	Detections []box           `json:"detections"`
	Stats      json.RawMessage `json:"stats"`
}

// frame waits for the next line that is a frame; false when the statistics come, which are left in the result.
func (p *program) frame() (frame, bool) {
	line, more := p.line()
	require.True(p.t, more, "output ended without statistics: %s", p.stderr)
	var f frame
	require.NoError(p.t, json.Unmarshal([]byte(line), &f), line)
	return f, f.Stats == nil
}

// rest reads everything up to the statistics.
func (p *program) rest() (frames []frame, stats totals) {
	for {
		f, more := p.frame()
		if !more {
			require.NoError(p.t, json.Unmarshal(f.Stats, &stats))
			return frames, stats
		}
		frames = append(frames, f)
	}
}

// totals is what a test reads of the statistics line.
type totals struct {
	Cameras []struct {
		Captured, Inferred, Displaced, Reconnects, Failed uint64
		Hardware                                          string
	}
	MQTT struct {
		Detections struct{ Offered, Delivered, Dropped, Queued uint64 }
	}
	FirstFrame float64 `json:"first_frame_ms"`
	Dropped    uint64  `json:"lines_dropped"`
}

// stop sends a signal and waits for the end, reading what is still printed.
func (p *program) stop(signal syscall.Signal) error {
	require.NoError(p.t, p.command.Process.Signal(signal))
	return p.wait()
}

func (p *program) wait() error {
	deadline := time.After(patience)
	for {
		select {
		case _, more := <-p.lines:
			if !more {
				return <-p.done
			}
		case <-deadline:
			require.FailNow(p.t, "the program does not end", "standard error: %s", p.stderr)
		}
	}
}

// freePort is a port on the loopback address that nobody uses at the moment.
func freePort(t *testing.T) int {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

// tool gives the path of a program that the test needs, or skips it.
func tool(t *testing.T, name string) string {
	path, err := exec.LookPath(name)
	if err != nil {
		path, err = exec.LookPath("/usr/sbin/" + name)
	}
	if err != nil {
		t.Skipf("%s is not installed; make deps installs it", name)
	}
	return path
}

// video writes a test film of that many frames with ffmpeg.
func video(t *testing.T, frames int) string {
	path := t.TempDir() + "/film.mp4"
	output, err := exec.Command(tool(t, "ffmpeg"), "-loglevel", "error", "-f", "lavfi", "-i", "testsrc2=size=320x240:rate=25",
		"-frames:v", fmt.Sprint(frames), "-pix_fmt", "yuv420p", path).CombinedOutput()
	require.NoError(t, err, strings.TrimSpace(string(output)))
	return path
}

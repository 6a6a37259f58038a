package daemon

import (
	"bytes"
	"fmt"
	"image"
	"image/jpeg"
	"mime/multipart"
	"net"
	"net/http"
	"net/textproto"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
)

// manager is systemd's side of the service.
type manager struct {
	t        *testing.T
	messages chan string
	seen     []string // all so far
}

const ping = "WATCHDOG=1"

// manage starts edge-infer as a service whose watchdog wants to be fed every half second.
func manage(t *testing.T, args ...string) (*manager, *programtest.Program) {
	return manageWith(t, nil, args...)
}

// manageWith is manage with more environment variables.
func manageWith(t *testing.T, environment []string, args ...string) (*manager, *programtest.Program) {
	path := filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	require.NoError(t, err)
	m := &manager{t: t, messages: make(chan string, 10000)}
	read := make(chan struct{})
	go func() {
		defer close(read)
		buffer := make([]byte, 4096)
		for {
			n, err := conn.Read(buffer)
			if err != nil {
				return
			}
			m.messages <- string(buffer[:n])
		}
	}()
	t.Cleanup(func() {
		_ = conn.Close()
		<-read
	})
	p := programtest.StartWith(t, append([]string{"NOTIFY_SOCKET=" + path, "WATCHDOG_USEC=500000"}, environment...), args...)
	go func() { // nobody reads what it prints
		for range p.Lines {
			continue
		}
	}()
	return m, p
}

// within gives the next message, or nothing after a time.
func (m *manager) within(limit time.Duration) string {
	select {
	case message := <-m.messages:
		m.seen = append(m.seen, message)
		return message
	case <-time.After(limit):
		return ""
	}
}

// until waits for a message that begins so.
func (m *manager) until(begin string) string {
	for deadline := time.Now().Add(programtest.Patience); ; {
		message := m.within(time.Until(deadline))
		require.NotEmpty(m.t, message, "%s does not come, only %q", begin, m.seen)
		if strings.HasPrefix(message, begin) {
			return message
		}
	}
}

// status waits for a status line that is right.
func (m *manager) status(right func(string) bool) {
	for !right(m.until("STATUS=")) {
		continue
	}
}

// pinged sees that the pings do not stop for a while.
func (m *manager) pinged(while time.Duration) {
	for start := time.Now(); time.Since(start) < while; {
		m.until(ping)
	}
}

// moody is an HTTP camera that sends images or, while it sulks, nothing over a connection that stays open.
func moody(t *testing.T) (address string, sulk *atomic.Bool) {
	sulk = new(atomic.Bool)
	var img bytes.Buffer
	require.NoError(t, jpeg.Encode(&img, image.NewGray(image.Rect(0, 0, 160, 120)), nil))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		parts := multipart.NewWriter(w)
		w.Header().Set("Content-Type", "multipart/x-mixed-replace; boundary="+parts.Boundary())
		for ; r.Context().Err() == nil; time.Sleep(50 * time.Millisecond) {
			if sulk.Load() {
				continue
			}
			part, err := parts.CreatePart(textproto.MIMEHeader{"Content-Type": {"image/jpeg"}, "Content-Length": {fmt.Sprint(img.Len())}})
			if err != nil {
				return
			}
			_, _ = part.Write(img.Bytes())
			w.(http.Flusher).Flush()
		}
	})}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return "http://" + listener.Addr().String() + "/", sulk
}

// settings writes a configuration of that camera beside a demo camera.
func settings(t *testing.T, address, stall string) (path string) {
	path = filepath.Join(t.TempDir(), "edge-infer.yaml")
	text := "mqtt: {url: 'off'}\nmodel: {path: demo}\ncameras:\n  - {name: belt, uri: 'demo?width=160&height=120&fps=5'}\n" +
		fmt.Sprintf("  - {name: door, uri: '%s', stall: %s}\n", address, stall)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// TestASilentCameraDoesNotStopTheWatchdog: a new start of the program brings no camera recovered, but costs the others their images.
func TestASilentCameraDoesNotStopTheWatchdog(t *testing.T) {
	t.Parallel()
	address, sulk := moody(t)
	path := settings(t, address, "10m")
	m, p := manage(t, "--config", path, "--json", "--web", "127.0.0.1:0")
	m.until("READY=1")
	require.Regexp(t, `^STATUS=.*\d+\.\d fps  latency p50 .* mqtt off$`, m.until("STATUS="))
	m.until(ping)

	require.NoError(t, p.Command.Process.Signal(syscall.SIGHUP))
	require.Regexp(t, `^RELOADING=1\nMONOTONIC_USEC=[1-9]\d+$`, m.until("RELOADING=1"))
	m.until("READY=1")

	sulk.Store(true)
	m.pinged(stillWindow + 4*time.Second)

	require.NoError(t, p.Command.Process.Signal(syscall.SIGTERM))
	m.until("STOPPING=1")
	require.NoError(t, <-p.Done)
	for message := m.within(0); message != ""; message = m.within(0) {
		require.NotEqual(t, "READY=1", message)
	}
}

// TestACameraThatReconnectsDoesNotStopTheWatchdog: what is being mended is no reason for a restart.
func TestACameraThatReconnectsDoesNotStopTheWatchdog(t *testing.T) {
	t.Parallel()
	address, sulk := moody(t)
	m, p := manage(t, "--config", settings(t, address, "1s"), "--json")
	m.until("READY=1")
	m.status(func(text string) bool { return !strings.Contains(text, "door") }) // it runs
	sulk.Store(true)
	p.Logged("camera lost")
	m.pinged(stillWindow + 4*time.Second)
	sulk.Store(false)
	p.Logged("camera recovered")
	require.NoError(t, p.Command.Process.Signal(syscall.SIGTERM))
	require.NoError(t, <-p.Done)
}

// TestReadyMeansServing: with its cameras away the daemon serves, says so, and is no service that fails to start.
func TestReadyMeansServing(t *testing.T) {
	t.Parallel()
	address, sulk := moody(t)
	sulk.Store(true)
	m, p := manage(t, "--model", "demo", "--camera", address, "--mqtt", "off", "--json")
	m.until("READY=1")
	m.status(func(text string) bool { return strings.Contains(text, "cam0 connecting") })
	require.NoError(t, p.Command.Process.Signal(syscall.SIGHUP))
	p.Logged("configuration unchanged")
	m.until("READY=1")
	for range 3 {
		m.until(ping)
	}
	sulk.Store(false)
	m.status(func(text string) bool { return !strings.Contains(text, "cam0") })

	require.NoError(t, p.Command.Process.Signal(syscall.SIGTERM))
	m.until("STOPPING=1")
	require.NoError(t, <-p.Done)
}

// TestARestartIsNoStop: systemd kills a service that says it stops and does not within seconds.
func TestARestartIsNoStop(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "edge-infer.yaml")
	write := func(threads int) {
		text := fmt.Sprintf("mqtt: {url: 'off'}\nengine: {threads: %d}\ncameras: [{name: belt, uri: 'demo?width=160&height=120&fps=5'}]\n",
			threads)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	write(1)
	m, p := manage(t, "--config", path, "--json")
	m.until("READY=1")
	files := descriptors(t, p.Command.Process.Pid)
	for threads := 2; threads < 5; threads++ {
		m.seen = nil
		write(threads)
		require.NoError(t, p.Command.Process.Signal(syscall.SIGHUP))
		m.until("RELOADING=1")
		m.until("READY=1")
		require.NotContains(t, m.seen, "STOPPING=1")
	}
	require.Eventually(t, func() bool { return descriptors(t, p.Command.Process.Pid) <= files }, programtest.Patience, 20*time.Millisecond,
		"a restarted program inherits nothing that is open")
	require.NoError(t, p.Command.Process.Signal(syscall.SIGTERM))
	m.until("STOPPING=1")
	require.NoError(t, <-p.Done)
}

// descriptors is how many files a process has open, without the event store's database, whose connections open when they are first used.
func descriptors(t *testing.T, process int) (count int) {
	directory := fmt.Sprintf("/proc/%d/fd", process)
	entries, err := os.ReadDir(directory)
	require.NoError(t, err)
	for _, entry := range entries {
		target, _ := os.Readlink(filepath.Join(directory, entry.Name())) // it may be closed by now
		if !strings.Contains(target, "events.db") {
			count++
		}
	}
	return count
}

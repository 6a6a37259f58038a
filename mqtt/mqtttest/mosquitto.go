package mqtttest

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/internal/testtool"
)

// Mosquitto is a real broker, run by a test.
type Mosquitto struct {
	t       testing.TB
	binary  string
	config  string
	Address string
	command *exec.Cmd
}

// StartMosquitto runs mosquitto with a listener on a free port and more lines of configuration.
func StartMosquitto(t testing.TB, lines ...string) *Mosquitto {
	t.Helper()
	m := &Mosquitto{t: t, binary: testtool.Program(t, "mosquitto"), Address: FreeAddress(t)}
	host, port, err := net.SplitHostPort(m.Address)
	require.NoError(t, err)
	m.config = filepath.Join(t.TempDir(), "mosquitto.conf")
	// Started by root it would give up root and could not read the test's files.
	text := fmt.Sprintf("user root\nlistener %s %s\n%s\n", port, host, strings.Join(lines, "\n"))
	require.NoError(t, os.WriteFile(m.config, []byte(text), 0o644))
	m.Start()
	t.Cleanup(m.Kill)
	return m
}

// Start runs it, again after Kill or Stop.
func (m *Mosquitto) Start() {
	m.t.Helper()
	m.command = exec.Command(m.binary, "-c", m.config)
	require.NoError(m.t, m.command.Start())
	require.Eventually(m.t, func() bool {
		conn, err := net.Dial("tcp", m.Address)
		if err == nil {
			conn.Close()
		}
		return err == nil
	}, Patience, 10*time.Millisecond, "mosquitto does not listen")
}

// Kill ends it as a power cut does.
func (m *Mosquitto) Kill() { m.end(syscall.SIGKILL) }

// Stop has it write to disk what it retains, where it does that.
func (m *Mosquitto) Stop() { m.end(syscall.SIGTERM) }

// Pause suspends it, as if its machine hung.
func (m *Mosquitto) Pause() { require.NoError(m.t, m.command.Process.Signal(syscall.SIGSTOP)) }

// Resume continues a suspended broker.
func (m *Mosquitto) Resume() { require.NoError(m.t, m.command.Process.Signal(syscall.SIGCONT)) }

func (m *Mosquitto) end(signal syscall.Signal) {
	if m.command != nil {
		m.command.Process.Signal(signal)
		m.command.Wait()
		m.command = nil
	}
}

// Listener is a running mosquitto_sub.
type Listener struct {
	command *exec.Cmd
	output  *Journal
	errors  *Journal
}

// Listen runs mosquitto_sub and returns when its subscriptions are granted.
func (m *Mosquitto) Listen(filter string, arguments ...string) *Listener {
	m.t.Helper()
	host, port, _ := net.SplitHostPort(m.Address)
	l := &Listener{output: &Journal{}, errors: &Journal{}}
	// A pipe makes its output wait for a full buffer; stdbuf passes on each line.
	program := []string{"-oL", testtool.Program(m.t, "mosquitto_sub"), "-h", host, "-p", port, "-q", "1", "-v", "-d", "-t", filter}
	arguments = append(program, arguments...)
	l.command = exec.Command(testtool.Program(m.t, "stdbuf"), arguments...)
	l.command.Stdout, l.command.Stderr = l.output, l.errors
	require.NoError(m.t, l.command.Start())
	m.t.Cleanup(func() {
		l.command.Process.Kill()
		l.command.Wait()
	})
	require.Eventually(m.t, func() bool { return strings.Contains(l.output.String(), "Subscribed (mid") }, Patience, 10*time.Millisecond,
		"mosquitto_sub does not subscribe: %s%s", l.output, l.errors)
	return l
}

// Output is all that it has printed.
func (l *Listener) Output() string { return l.output.String() }

// Payloads are the messages of a topic, in their order.
func (l *Listener) Payloads(topic string) []string {
	var found []string
	for line := range strings.Lines(l.output.String()) {
		if payload, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), topic+" "); ok {
			found = append(found, payload)
		}
	}
	return found
}

// WaitLast returns when the newest payload of a topic is what is wanted.
func (l *Listener) WaitLast(t testing.TB, topic, want string) {
	t.Helper()
	require.Eventually(t, func() bool { p := l.Payloads(topic); return len(p) > 0 && p[len(p)-1] == want }, Patience, 10*time.Millisecond,
		"%s is not %q", topic, want)
}

// Publish runs mosquitto_pub.
func (m *Mosquitto) Publish(topic, payload string, arguments ...string) {
	m.t.Helper()
	host, port, _ := net.SplitHostPort(m.Address)
	arguments = append([]string{"-h", host, "-p", port, "-q", "1", "-t", topic, "-m", payload}, arguments...)
	output, err := exec.Command(testtool.Program(m.t, "mosquitto_pub"), arguments...).CombinedOutput()
	require.NoError(m.t, err, "%s", output)
}

// FreeAddress is a loopback address that nothing listens on.
func FreeAddress(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}

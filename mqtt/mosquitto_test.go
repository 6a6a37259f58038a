package mqtt

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// mosquitto is a real broker, run by a test.
type mosquitto struct {
	t       testing.TB
	binary  string
	config  string
	address string
	command *exec.Cmd
}

// startMosquitto runs mosquitto with a listener on a free port and more lines of configuration.
func startMosquitto(t testing.TB, lines ...string) *mosquitto {
	t.Helper()
	m := &mosquitto{t: t, binary: lookPath(t, "mosquitto"), address: freeAddress(t)}
	host, port, err := net.SplitHostPort(m.address)
	require.NoError(t, err)
	m.config = filepath.Join(t.TempDir(), "mosquitto.conf")
	// Started by root it would give up root and could not read the test's files.
	text := fmt.Sprintf("user root\nlistener %s %s\n%s\n", port, host, strings.Join(lines, "\n"))
	require.NoError(t, os.WriteFile(m.config, []byte(text), 0o644))
	m.start()
	t.Cleanup(m.kill)
	return m
}

func (m *mosquitto) start() {
	m.t.Helper()
	m.command = exec.Command(m.binary, "-c", m.config)
	require.NoError(m.t, m.command.Start())
	require.Eventually(m.t, func() bool {
		conn, err := net.Dial("tcp", m.address)
		if err == nil {
			conn.Close()
		}
		return err == nil
	}, patience, 10*time.Millisecond, "mosquitto does not listen")
}

func (m *mosquitto) kill() { m.end(syscall.SIGKILL) }

// stop has it write to disk what it retains, where it does that.
func (m *mosquitto) stop() { m.end(syscall.SIGTERM) }

func (m *mosquitto) end(signal syscall.Signal) {
	if m.command != nil {
		m.command.Process.Signal(signal)
		m.command.Wait()
		m.command = nil
	}
}

// listener is a running mosquitto_sub.
type listener struct {
	command *exec.Cmd
	output  *journal
	errors  *journal
}

// listen runs mosquitto_sub and returns when its subscriptions are granted.
func (m *mosquitto) listen(filter string, arguments ...string) *listener {
	m.t.Helper()
	host, port, _ := net.SplitHostPort(m.address)
	l := &listener{output: &journal{}, errors: &journal{}}
	// A pipe makes its output wait for a full buffer; stdbuf passes on each line.
	arguments = append([]string{"-oL", lookPath(m.t, "mosquitto_sub"), "-h", host, "-p", port, "-q", "1", "-v", "-d", "-t", filter}, arguments...)
	l.command = exec.Command(lookPath(m.t, "stdbuf"), arguments...)
	l.command.Stdout, l.command.Stderr = l.output, l.errors
	require.NoError(m.t, l.command.Start())
	m.t.Cleanup(func() {
		l.command.Process.Kill()
		l.command.Wait()
	})
	require.Eventually(m.t, func() bool { return strings.Contains(l.output.String(), "Subscribed (mid") }, patience, 10*time.Millisecond,
		"mosquitto_sub does not subscribe: %s%s", l.output, l.errors)
	return l
}

// payloads are the messages of a topic, in their order.
func (l *listener) payloads(topic string) []string {
	var found []string
	for line := range strings.Lines(l.output.String()) {
		if payload, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), topic+" "); ok {
			found = append(found, payload)
		}
	}
	return found
}

func (l *listener) waitLast(t testing.TB, topic, want string) {
	t.Helper()
	require.Eventually(t, func() bool { p := l.payloads(topic); return len(p) > 0 && p[len(p)-1] == want }, patience, 10*time.Millisecond,
		"%s is not %q", topic, want)
}

// publish runs mosquitto_pub.
func (m *mosquitto) publish(topic, payload string, arguments ...string) {
	m.t.Helper()
	host, port, _ := net.SplitHostPort(m.address)
	arguments = append([]string{"-h", host, "-p", port, "-q", "1", "-t", topic, "-m", payload}, arguments...)
	output, err := exec.Command(lookPath(m.t, "mosquitto_pub"), arguments...).CombinedOutput()
	require.NoError(m.t, err, "%s", output)
}

func TestMosquitto(t *testing.T) {
	noLeaks(t)
	m := startMosquitto(t, "allow_anonymous true")
	c := testClient("tcp://" + m.address)
	r := &recorder{}
	c.Controller = r
	c.Spool.Directory = t.TempDir()
	sub := m.listen("edge-infer/#")
	stop := start(t, c)
	sub.waitLast(t, "edge-infer/gate/available", "online")
	c.Settings("cam0", Settings{Detect: true, Threshold: 0.25, Interval: 1})
	c.Count("cam0", "person", 2)
	for i := range 200 {
		c.Detections(frame("cam0", uint64(i)))
		require.Eventually(t, func() bool { return c.Accounting().Detections.Queued == 0 }, patience, 50*time.Microsecond)
	}
	require.Eventually(t, func() bool { return len(sub.payloads("edge-infer/gate/cam0/detections")) == 200 }, patience, 10*time.Millisecond)
	for i, payload := range sub.payloads("edge-infer/gate/cam0/detections") {
		require.Contains(t, payload, fmt.Sprintf(`"seq":%d,`, i))
	}
	sub.waitLast(t, "edge-infer/gate/cam0/count/person", "2")
	require.Eventually(t, func() bool {
		m.publish("edge-infer/gate/cam0/threshold/set", "0.4")
		return len(r.all()) > 0
	}, patience, 20*time.Millisecond)
	sub.waitLast(t, "edge-infer/gate/cam0/threshold/state", "0.4")

	// The broker dies and loses what it retained; everything comes back by itself.
	m.kill()
	require.Eventually(t, func() bool { return !c.Connection().Connected }, patience, time.Millisecond)
	for i := range 5 {
		c.Event(&Event{Type: "update", Camera: "cam0", Sequence: uint64(i), Time: time.Now()})
	}
	c.Count("cam0", "person", 7)
	m.start()
	waitConnected(t, c)
	again := m.listen("edge-infer/#")
	again.waitLast(t, "edge-infer/gate/available", "online")
	again.waitLast(t, "edge-infer/gate/cam0/count/person", "7")
	again.waitLast(t, "edge-infer/gate/cam0/threshold/state", "0.4")
	require.Eventually(t, func() bool { return c.Accounting().Events.Queued == 0 }, patience, time.Millisecond)
	assert.Equal(t, uint64(5), balanced(t, c).Events.Delivered)

	assert.Less(t, stop(), 2*time.Second)
	again.waitLast(t, "edge-infer/gate/available", "stopped")
}

func TestMosquittoPublishesTheWill(t *testing.T) {
	m := startMosquitto(t, "allow_anonymous true")
	c := testClient("tcp://" + m.address)
	require.NoError(t, c.Open())
	defer c.Close()
	a, err := parseAddress(c.Brokers[0])
	require.NoError(t, err)
	s, err := c.connect(t.Context(), a, identity{id: c.ClientID, will: true})
	require.NoError(t, err)
	sub := m.listen("edge-infer/#")
	s.conn.Close() // as a crash does
	sub.waitLast(t, "edge-infer/gate/available", "offline")
}

func TestMosquittoPassword(t *testing.T) {
	directory := t.TempDir()
	passwords := filepath.Join(directory, "passwords")
	output, err := exec.Command(lookPath(t, "mosquitto_passwd"), "-c", "-b", passwords, "edge", "s3cret-Wort").CombinedOutput()
	require.NoError(t, err, "%s", output)
	require.NoError(t, os.Chmod(passwords, 0o644))
	m := startMosquitto(t, "allow_anonymous false", "password_file "+passwords)

	log := &journal{}
	c := testClient("tcp://" + m.address)
	c.User, c.PasswordFile, c.Logger = "edge", filepath.Join(directory, "password"), log.logger()
	require.NoError(t, os.WriteFile(c.PasswordFile, []byte("wrong-Wort\n"), 0o600))
	start(t, c)
	require.Eventually(t, func() bool {
		return strings.Contains(c.Connection().Error, "not Authorized (check user and password, and what the broker allows this client)")
	}, patience, time.Millisecond, "%+v", c.Connection())
	time.Sleep(3 * c.RefusedRetry)
	assert.Equal(t, 1, strings.Count(log.String(), "mqtt cannot connect"), log.String())
	// The file is read again: the right password heals it without a restart.
	require.NoError(t, os.WriteFile(c.PasswordFile, []byte("s3cret-Wort\n"), 0o600))
	waitConnected(t, c)
	sub := m.listen("edge-infer/#", "-u", "edge", "-P", "s3cret-Wort")
	sub.waitLast(t, "edge-infer/gate/available", "online")
	assert.NotContains(t, log.String(), "Wort")
}

func TestMosquittoWithClientCertificates(t *testing.T) {
	authority := newAuthority(t)
	server := authority.issue(t, "server", time.Now().Add(time.Hour))
	client := authority.issue(t, "client", time.Now().Add(time.Hour))
	m := startMosquitto(t, "allow_anonymous true", "cafile "+server.CAFile, "certfile "+server.CertificateFile, "keyfile "+server.KeyFile,
		"require_certificate true", "tls_version tlsv1.2")
	c := testClient("tls://" + m.address)
	c.TLS = client
	start(t, c)
	waitConnected(t, c)
	sub := m.listen("edge-infer/#", "--cafile", client.CAFile, "--cert", client.CertificateFile, "--key", client.KeyFile)
	c.Detections(frame("cam0", 7))
	require.Eventually(t, func() bool { return len(sub.payloads("edge-infer/gate/cam0/detections")) == 1 }, patience, 10*time.Millisecond)

	for name, bad := range map[string]struct {
		files TLS
		want  string
	}{
		"no client certificate": {TLS{CAFile: client.CAFile}, "client certificate"},
		"unknown authority":     {TLS{CertificateFile: client.CertificateFile, KeyFile: client.KeyFile}, "name its CA file"},
		"another server name":   {TLS{CAFile: client.CAFile, CertificateFile: client.CertificateFile, KeyFile: client.KeyFile, ServerName: "elsewhere"}, "set the TLS server name"},
	} {
		t.Run(name, func(t *testing.T) {
			c := testClient("tls://" + m.address)
			c.TLS = bad.files
			start(t, c)
			require.Eventually(t, func() bool { return c.Connection().Error != "" }, patience, time.Millisecond)
			assert.False(t, c.Connection().Connected)
			assert.Contains(t, c.Connection().Error, bad.want)
		})
	}
	t.Run("no TLS", func(t *testing.T) {
		c := testClient("tcp://" + m.address)
		start(t, c)
		require.Eventually(t, func() bool { return c.Connection().Error != "" }, patience, time.Millisecond)
		assert.Contains(t, c.Connection().Error, "it may want TLS")
	})
	t.Run("not checked when told so", func(t *testing.T) {
		c := testClient("tls://" + m.address)
		c.TLS = TLS{CertificateFile: client.CertificateFile, KeyFile: client.KeyFile, Insecure: true}
		start(t, c)
		waitConnected(t, c)
	})
}

// TestMosquittoReplay queues more events than mosquitto's default limit of 1000 for a subscriber, and replays them without loss. The full
// run has 20,000.
func TestMosquittoReplay(t *testing.T) {
	count := 4000
	if _, full := faultTime(t); full {
		count = 20_000
	}
	m := startMosquitto(t, "allow_anonymous true")
	sub := m.listen("edge-infer/gate/cam0/events")
	directory := t.TempDir()
	c := testClient("tcp://" + m.address)
	c.Spool.Directory = directory
	require.NoError(t, c.Open())
	var ids []string
	for i := range count {
		ids = append(ids, c.Event(&Event{
			Type: "update", Camera: "cam0", Label: "person", Sequence: uint64(i), Time: time.Now(), Score: 0.9, Box: [4]float64{1, 2, 3, 4}, Track: 9,
		}))
	}
	require.NoError(t, c.Close())

	c = testClient("tcp://" + m.address) // as after a reboot
	c.Spool.Directory = directory
	begin := time.Now()
	start(t, c)
	require.Equal(t, uint64(count), balanced(t, c).Events.Offered)
	require.Eventually(t, func() bool { return c.Accounting().Events.Queued == 0 }, 3*patience, 10*time.Millisecond)
	took := time.Since(begin)
	topic := "edge-infer/gate/cam0/events"
	require.Eventually(t, func() bool { return len(sub.payloads(topic)) >= count }, patience, 50*time.Millisecond,
		"%d of %d events arrived", len(sub.payloads(topic)), count)
	for i, payload := range sub.payloads(topic) {
		require.Contains(t, payload, `{"v":1,"id":"`+ids[i]+`",`)
		require.Contains(t, payload, `,"replayed":true}`)
	}
	assert.Equal(t, Account{Offered: uint64(count), Delivered: uint64(count)}, balanced(t, c).Events)
	t.Logf("%d events in %v", count, took)
}

func TestMosquittoGetsWhatTheSchemasSay(t *testing.T) {
	m := startMosquitto(t, "allow_anonymous true")
	sub := m.listen("edge-infer/#")
	c := testClient("tcp://" + m.address)
	start(t, c)
	waitConnected(t, c)
	c.Detections(frame("cam0", 1))
	c.Event(&Event{Type: "new", Camera: "cam0", Time: time.Now()})
	compiled := schemas(t)
	for topic, schema := range map[string]string{"detections": "detections", "events": "event"} {
		require.Eventually(t, func() bool { return len(sub.payloads("edge-infer/gate/cam0/"+topic)) == 1 }, patience, 10*time.Millisecond)
		payload := sub.payloads("edge-infer/gate/cam0/" + topic)[0]
		assert.True(t, json.Valid(bytes.TrimSpace([]byte(payload))))
		assert.NoError(t, validate(t, compiled[schema], payload))
	}
}

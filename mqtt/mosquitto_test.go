package mqtt

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/internal/testtool"
	"github.com/edge-infer/edge-infer/mqtt/address"
	"github.com/edge-infer/edge-infer/mqtt/credentials"
	"github.com/edge-infer/edge-infer/mqtt/ledger"
	"github.com/edge-infer/edge-infer/mqtt/mqtttest"
	"github.com/edge-infer/edge-infer/mqtt/payload"
)

func TestMosquitto(t *testing.T) {
	mqtttest.NoLeaks(t)
	m := mqtttest.StartMosquitto(t, "allow_anonymous true")
	c := testClient("tcp://" + m.Address)
	r := &recorder{}
	c.Controller = r
	c.Spool.Directory = t.TempDir()
	sub := m.Listen("edge-infer/#")
	stop := start(t, c)
	sub.WaitLast(t, "edge-infer/gate/available", "online")
	c.Settings("cam0", Settings{Detect: true, Threshold: 0.25, Interval: 1})
	c.Count("cam0", "person", 2)
	for i := range 200 {
		send(c, frame("cam0", uint64(i)))
		require.Eventually(t, func() bool { return c.Accounting().Detections.Queued == 0 }, mqtttest.Patience, 50*time.Microsecond)
	}
	require.Eventually(t, func() bool { return len(sub.Payloads("edge-infer/gate/cam0/detections")) == 200 }, mqtttest.Patience,
		10*time.Millisecond)
	for i, payload := range sub.Payloads("edge-infer/gate/cam0/detections") {
		require.Contains(t, payload, fmt.Sprintf(`"seq":%d,`, i))
	}
	sub.WaitLast(t, "edge-infer/gate/cam0/count/person", "2")
	require.Eventually(t, func() bool {
		m.Publish("edge-infer/gate/cam0/threshold/set", "0.4")
		return len(r.all()) > 0
	}, mqtttest.Patience, 20*time.Millisecond)
	sub.WaitLast(t, "edge-infer/gate/cam0/threshold/state", "0.4")

	// The broker dies and loses what it retained; everything comes back by itself.
	m.Kill()
	require.Eventually(t, func() bool { return !c.Connection().Connected }, mqtttest.Patience, time.Millisecond)
	for i := range 5 {
		c.Event(&payload.Event{Type: "update", Camera: "cam0", Sequence: uint64(i), Time: time.Now()})
	}
	c.Count("cam0", "person", 7)
	m.Start()
	waitConnected(t, c)
	again := m.Listen("edge-infer/#")
	again.WaitLast(t, "edge-infer/gate/available", "online")
	again.WaitLast(t, "edge-infer/gate/cam0/count/person", "7")
	again.WaitLast(t, "edge-infer/gate/cam0/threshold/state", "0.4")
	require.Eventually(t, func() bool { return c.Accounting().Events.Queued == 0 }, mqtttest.Patience, time.Millisecond)
	assert.Equal(t, uint64(5), balanced(t, c).Events.Delivered)

	assert.Less(t, stop(), unhindered)
	again.WaitLast(t, "edge-infer/gate/available", "stopped")
}

func TestMosquittoPublishesTheWill(t *testing.T) {
	m := mqtttest.StartMosquitto(t, "allow_anonymous true")
	c := testClient("tcp://" + m.Address)
	require.NoError(t, c.Open())
	defer c.Close()
	a, err := address.Parse(c.Brokers[0])
	require.NoError(t, err)
	s, err := c.connect(t.Context(), a, identity{id: c.ClientID, will: c.topics.Available()})
	require.NoError(t, err)
	sub := m.Listen("edge-infer/#")
	s.conn.Close() // as a crash does
	sub.WaitLast(t, "edge-infer/gate/available", "offline")
}

func TestMosquittoPassword(t *testing.T) {
	directory := t.TempDir()
	passwords := filepath.Join(directory, "passwords")
	output, err := exec.Command(testtool.Program(t, "mosquitto_passwd"), "-c", "-b", passwords, "edge", "s3cret-Wort").CombinedOutput()
	require.NoError(t, err, "%s", output)
	require.NoError(t, os.Chmod(passwords, 0o644))
	m := mqtttest.StartMosquitto(t, "allow_anonymous false", "password_file "+passwords)

	log := &mqtttest.Journal{}
	c := testClient("tcp://" + m.Address)
	c.User, c.PasswordFile, c.Logger = "edge", filepath.Join(directory, "password"), log.Logger()
	require.NoError(t, os.WriteFile(c.PasswordFile, []byte("wrong-Wort\n"), 0o600))
	start(t, c)
	require.Eventually(t, func() bool {
		return strings.Contains(c.Connection().Error, "not Authorized (check user and password, and what the broker allows this client)")
	}, mqtttest.Patience, time.Millisecond, "%+v", c.Connection())
	time.Sleep(3 * c.RefusedRetry)
	assert.Equal(t, 1, strings.Count(log.String(), "mqtt cannot connect"), log.String())
	// The file is read again: the right password heals it without a restart.
	require.NoError(t, os.WriteFile(c.PasswordFile, []byte("s3cret-Wort\n"), 0o600))
	waitConnected(t, c)
	sub := m.Listen("edge-infer/#", "-u", "edge", "-P", "s3cret-Wort")
	sub.WaitLast(t, "edge-infer/gate/available", "online")
	assert.NotContains(t, log.String(), "Wort")
}

func TestMosquittoWithClientCertificates(t *testing.T) {
	authority := mqtttest.NewAuthority(t)
	server := authority.Issue(t, "server", time.Now().Add(time.Hour))
	client := authority.Issue(t, "client", time.Now().Add(time.Hour))
	m := mqtttest.StartMosquitto(t, "allow_anonymous true", "cafile "+server.CAFile, "certfile "+server.CertificateFile,
		"keyfile "+server.KeyFile,
		"require_certificate true", "tls_version tlsv1.2")
	c := testClient("tls://" + m.Address)
	c.TLS = client
	start(t, c)
	waitConnected(t, c)
	sub := m.Listen("edge-infer/#", "--cafile", client.CAFile, "--cert", client.CertificateFile, "--key", client.KeyFile)
	send(c, frame("cam0", 7))
	require.Eventually(t, func() bool { return len(sub.Payloads("edge-infer/gate/cam0/detections")) == 1 }, mqtttest.Patience,
		10*time.Millisecond)

	for name, bad := range map[string]struct {
		files credentials.TLS
		want  string
	}{
		"no client certificate": {credentials.TLS{CAFile: client.CAFile}, "client certificate"},
		"unknown authority":     {credentials.TLS{CertificateFile: client.CertificateFile, KeyFile: client.KeyFile}, "name its CA file"},
		"another server name": {credentials.TLS{
			CAFile: client.CAFile, CertificateFile: client.CertificateFile, KeyFile: client.KeyFile, ServerName: "elsewhere",
		}, "set the TLS server name"},
	} {
		t.Run(name, func(t *testing.T) {
			c := testClient("tls://" + m.Address)
			c.TLS = bad.files
			start(t, c)
			require.Eventually(t, func() bool { return c.Connection().Error != "" }, mqtttest.Patience, time.Millisecond)
			assert.False(t, c.Connection().Connected)
			assert.Contains(t, c.Connection().Error, bad.want)
		})
	}
	t.Run("no TLS", func(t *testing.T) {
		c := testClient("tcp://" + m.Address)
		start(t, c)
		require.Eventually(t, func() bool { return c.Connection().Error != "" }, mqtttest.Patience, time.Millisecond)
		assert.Contains(t, c.Connection().Error, "it may want TLS")
	})
	t.Run("not checked when told so", func(t *testing.T) {
		c := testClient("tls://" + m.Address)
		c.TLS = credentials.TLS{CertificateFile: client.CertificateFile, KeyFile: client.KeyFile, Insecure: true}
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
	m := mqtttest.StartMosquitto(t, "allow_anonymous true")
	sub := m.Listen("edge-infer/gate/cam0/events")
	directory := t.TempDir()
	c := testClient("tcp://" + m.Address)
	c.Spool.Directory = directory
	require.NoError(t, c.Open())
	var ids []string
	for i := range count {
		ids = append(ids, c.Event(&payload.Event{
			Type: "update", Camera: "cam0", Label: "person", Sequence: uint64(i), Time: time.Now(), Score: 0.9, Box: [4]float64{1, 2, 3, 4},
			Track: 9,
		}))
	}
	require.NoError(t, c.Close())

	c = testClient("tcp://" + m.Address) // as after a reboot
	c.Spool.Directory = directory
	begin := time.Now()
	start(t, c)
	require.Equal(t, uint64(count), balanced(t, c).Events.Offered)
	require.Eventually(t, func() bool { return c.Accounting().Events.Queued == 0 }, 3*mqtttest.Patience, 10*time.Millisecond)
	took := time.Since(begin)
	topic := "edge-infer/gate/cam0/events"
	require.Eventually(t, func() bool { return len(sub.Payloads(topic)) >= count }, mqtttest.Patience, 50*time.Millisecond,
		"%d of %d events arrived", len(sub.Payloads(topic)), count)
	for i, payload := range sub.Payloads(topic) {
		require.Contains(t, payload, `{"v":1,"id":"`+ids[i]+`",`)
		require.Contains(t, payload, `,"replayed":true}`)
	}
	assert.Equal(t, ledger.Account{Offered: uint64(count), Delivered: uint64(count)}, balanced(t, c).Events)
	t.Logf("%d events in %v", count, took)
}

func TestMosquittoGetsWhatTheSchemasSay(t *testing.T) {
	m := mqtttest.StartMosquitto(t, "allow_anonymous true")
	sub := m.Listen("edge-infer/#")
	c := testClient("tcp://" + m.Address)
	start(t, c)
	waitConnected(t, c)
	send(c, frame("cam0", 1))
	c.Event(&payload.Event{Type: "new", Camera: "cam0", Time: time.Now()})
	compiled := schemas(t)
	for topic, schema := range map[string]string{"detections": "detections", "events": "event"} {
		require.Eventually(t, func() bool { return len(sub.Payloads("edge-infer/gate/cam0/"+topic)) == 1 }, mqtttest.Patience,
			10*time.Millisecond)
		payload := sub.Payloads("edge-infer/gate/cam0/" + topic)[0]
		assert.True(t, json.Valid(bytes.TrimSpace([]byte(payload))))
		assert.NoError(t, validate(t, compiled[schema], payload))
	}
}

package daemon

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rclone/gofakes3"
	"github.com/rclone/gofakes3/s3mem"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
	"github.com/edge-infer/edge-infer/internal/testtool"
)

// reconfigured is a running program whose outputs are changed by reloads. Its camera goes on.
type reconfigured struct {
	*programtest.Program
	t    *testing.T
	path string // of the configuration
	page string

	inferred uint64 // by the camera, at the last look
	reopens  bool   // the camera is opened again, and counts anew
}

const oneCamera = "name: gate\nweb: {listen: '127.0.0.1:0'}\ncameras: [{name: belt, uri: 'demo?width=320&height=240&fps=15'}]\n"

// reconfigure starts the program with these outputs. Its environment has further variables.
func reconfigure(t *testing.T, outputs string, environment ...string) *reconfigured {
	r := &reconfigured{t: t, path: filepath.Join(t.TempDir(), "edge-infer.yaml")}
	require.NoError(t, os.WriteFile(r.path, []byte(oneCamera+outputs), 0o600))
	r.Program = programtest.StartWith(t, environment, "--config", r.path)
	r.page = r.PrintedAfter("web page at ")
	r.Discard()
	r.eventually(func() bool { return r.status().Cameras[0].Pipeline.Inferred > 0 })
	return r
}

func (r *reconfigured) eventually(condition func() bool) {
	r.t.Helper()
	require.Eventually(r.t, condition, programtest.Patience, 50*time.Millisecond, "%s", r.Stderr)
}

type outputsStatus struct {
	Cameras   []struct{ Pipeline struct{ Inferred uint64 } }
	Operation struct{ Restarts int }
	Reload    struct {
		At    time.Time
		Error string
	}
	Broker string
	Queues []struct {
		Name                       string
		Offered, Delivered, Queued uint64
	}
	Upload *struct{ Uploaded uint64 }
	Clips  struct {
		Bytes    int64
		MaxBytes int64 `json:"max_bytes"`
		Cameras  []struct{ Recording bool }
	}
	Webhooks []struct {
		Name              string
		Queued, Delivered uint64
	}
}

// status returns the status of a process that has not restarted, and whose camera has gone on.
func (r *reconfigured) status() (s outputsStatus) {
	r.t.Helper()
	_, text := programtest.Get(r.t, programtest.Visitor(r.t), r.page+"api/status")
	require.NoError(r.t, json.Unmarshal(text, &s), string(text))
	require.Zero(r.t, s.Operation.Restarts)
	now := s.Cameras[0].Pipeline.Inferred
	require.True(r.t, r.reopens || now >= r.inferred, "%d frames after %d", now, r.inferred)
	r.inferred = now
	return s
}

// reload has these outputs come into force and returns the error of the reload, empty for none. The camera goes on meanwhile and later.
func (r *reconfigured) reload(outputs string) string {
	r.t.Helper()
	require.NoError(r.t, os.WriteFile(r.path, []byte(oneCamera+outputs), 0o600))
	return r.hangup()
}

func (r *reconfigured) hangup() string {
	r.t.Helper()
	before := r.status().Reload.At
	require.NoError(r.t, r.Command.Process.Signal(syscall.SIGHUP))
	r.eventually(func() bool { return r.status().Reload.At.After(before) })
	at := r.status()
	frames := at.Cameras[0].Pipeline.Inferred
	r.eventually(func() bool { return r.status().Cameras[0].Pipeline.Inferred > frames+5 })
	return at.Reload.Error
}

// events returns the account of events.
func (r *reconfigured) events() (offered, queued uint64) {
	for _, q := range r.status().Queues {
		if q.Name == "events" {
			return q.Offered, q.Queued
		}
	}
	return 0, 0
}

// mosquittoWith starts a broker that wants a password.
func mosquittoWith(t *testing.T, port int, password string) {
	dir := t.TempDir()
	passwords, configuration := filepath.Join(dir, "passwords"), filepath.Join(dir, "mosquitto.conf")
	output, err := exec.Command(testtool.Program(t, "mosquitto_passwd"), "-c", "-b", passwords, "edge", password).CombinedOutput()
	require.NoError(t, err, "%s", output)
	require.NoError(t, os.Chmod(passwords, 0o644))
	text := fmt.Sprintf("user root\nlistener %d 127.0.0.1\nallow_anonymous false\npassword_file %s\nacl_file %s\n", port, passwords, filepath.Join(dir, "acl"))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "acl"), []byte("user edge\ntopic readwrite #\n"), 0o644))
	require.NoError(t, os.WriteFile(configuration, []byte(text), 0o644))
	programtest.Serve(t, port, testtool.Program(t, "mosquitto"), "-c", configuration)
}

// ids collects the ids of the events that subscribers get.
type ids struct {
	mu  sync.Mutex
	all []string
}

var eventID = regexp.MustCompile(`"id":"([^"]+)"`)

func (i *ids) read(lines <-chan string) {
	go func() {
		for line := range lines {
			topic, payload, _ := strings.Cut(line, " ")
			if found := eventID.FindStringSubmatch(payload); found != nil && strings.HasSuffix(topic, "/events") {
				i.mu.Lock()
				i.all = append(i.all, found[1])
				i.mu.Unlock()
			}
		}
	}()
}

// count returns how many ids there are, and how many events.
func (i *ids) count() (distinct, all int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	sorted := slices.Clone(i.all)
	slices.Sort(sorted)
	return len(slices.Compact(sorted)), len(i.all)
}

// TestMQTTMovesWhileFramesGoOn: another broker, with another password, restarts nothing. Events of before, meanwhile and afterwards arrive,
// those that wait for a broker that is away at the next one. A broken certificate changes nothing.
func TestMQTTMovesWhileFramesGoOn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ports := []int{programtest.FreePort(t), programtest.FreePort(t), programtest.FreePort(t)}
	mosquittoWith(t, ports[0], "password-one")
	mosquittoWith(t, ports[1], "password-two")
	broken := filepath.Join(dir, "broken.pem")
	require.NoError(t, os.WriteFile(broken, []byte("no certificate"), 0o600))
	secret := filepath.Join(dir, "password")
	require.NoError(t, os.WriteFile(secret, []byte("password-one"), 0o600))
	at := func(port int, more string) string {
		return fmt.Sprintf("mqtt: {url: 'tcp://127.0.0.1:%d', user: edge, password_file: %s, count_interval: 1s%s}\n", port, secret, more)
	}
	received := &ids{}
	for i, password := range []string{"password-one", "password-two"} {
		received.read(programtest.SubscribeAs(t, ports[i], "edge-infer/gate/+/events", "edge", password))
	}
	r := reconfigure(t, at(ports[0], ""))
	grown := func(condition func(offered, queued uint64) bool) {
		t.Helper()
		r.eventually(func() bool { return condition(r.events()) })
	}
	more := func() {
		t.Helper()
		before, _ := received.count()
		r.eventually(func() bool { now, _ := received.count(); return now > before+2 })
	}
	more()
	require.NoError(t, os.WriteFile(secret, []byte("password-two"), 0o600))
	require.Empty(t, r.reload(at(ports[1], "")))
	more()
	require.Contains(t, r.reload(at(ports[0], ", ca: "+broken)), "broken.pem")
	more()
	require.Empty(t, r.reload(at(ports[2], ""))) // nobody is there
	offered, _ := r.events()
	grown(func(now, queued uint64) bool { return now > offered+2 && queued > 2 })
	require.NoError(t, os.WriteFile(secret, []byte("password-one"), 0o600))
	require.Empty(t, r.reload(at(ports[0], "")))
	more()
	grown(func(_, queued uint64) bool { return queued == 0 })
	offered, _ = r.events()
	r.eventually(func() bool { distinct, _ := received.count(); return uint64(distinct) >= offered })
	_, metrics := programtest.Get(t, programtest.Visitor(t), r.page+"metrics")
	repeats := regexp.MustCompile(`(?m)^edge_infer_mqtt_repeats_total(?:{[^}]*})? (\d+)`).FindSubmatch(metrics)
	require.NotNil(t, repeats)
	allowed, err := strconv.Atoi(string(repeats[1]))
	require.NoError(t, err)
	distinct, all := received.count()
	require.LessOrEqual(t, all-distinct, allowed)
	t.Logf("%d events, %d repeated", distinct, all-distinct)
	require.NotContains(t, r.Stderr.String(), "restarting")
	require.NoError(t, r.Stop(syscall.SIGTERM))
}

// TestTheEmbeddedBrokerTakesAPassword: a new password at the same address, another address, and an address in use, which changes nothing.
func TestTheEmbeddedBrokerTakesAPassword(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "password")
	require.NoError(t, os.WriteFile(secret, []byte("password-one"), 0o600))
	ports := []int{programtest.FreePort(t), programtest.FreePort(t)}
	at := func(port int, more string) string {
		return fmt.Sprintf("mqtt: {url: embedded, listen: '127.0.0.1:%d'%s}\n", port, more)
	}
	r := reconfigure(t, at(ports[0], ""))
	heard := func(port int, password string) {
		t.Helper()
		arguments := []string{"-h", "127.0.0.1", "-p", strconv.Itoa(port), "-t", "edge-infer/gate/available", "-C", "1", "-W", "1"}
		if password != "" {
			arguments = append(arguments, "-u", "edge", "-P", password)
		}
		r.eventually(func() bool {
			output, _ := exec.Command(testtool.Program(t, "mosquitto_sub"), arguments...).Output()
			return strings.TrimSpace(string(output)) == "online"
		})
	}
	heard(ports[0], "")
	login := ", user: edge, password_file: " + secret
	require.Empty(t, r.reload(at(ports[0], login)))
	heard(ports[0], "password-one")
	output, err := exec.Command(testtool.Program(t, "mosquitto_sub"), "-h", "127.0.0.1", "-p", strconv.Itoa(ports[0]), "-t", "#", "-C", "1",
		"-W", "5").CombinedOutput()
	require.Error(t, err, "%s", output)

	require.NoError(t, os.WriteFile(secret, []byte("password-two!"), 0o600)) // the file alone
	require.Empty(t, r.hangup())
	heard(ports[0], "password-two!")

	taken, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", ports[1]))
	require.NoError(t, err)
	require.Contains(t, r.reload(at(ports[1], login)), "address already in use")
	heard(ports[0], "password-two!")
	require.NoError(t, taken.Close())
	require.Empty(t, r.reload(at(ports[1], login)))
	heard(ports[1], "password-two!")
	require.NotContains(t, r.Stderr.String(), "restarting")
	require.NoError(t, r.Stop(syscall.SIGTERM))
}

// receiver takes webhooks, by id.
type receiver struct {
	*httptest.Server
	away atomic.Bool

	mu  sync.Mutex
	all map[string]int // how often, by id
}

func receive(t *testing.T) *receiver {
	r := &receiver{all: map[string]int{}}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		_, err := io.Copy(io.Discard, request.Body)
		assert.NoError(t, err)
		if r.away.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.all[request.Header.Get("webhook-id")]++
	}))
	t.Cleanup(r.Close)
	return r
}

// numbers returns the numbers of the received events in ascending order.
func (r *receiver) numbers() (all []int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id := range r.all {
		_, text, _ := strings.Cut(id, "-")
		number, _ := strconv.Atoi(text)
		all = append(all, number)
	}
	slices.Sort(all)
	return all
}

// TestWebhooksChangeWhileEventsWait: the events that wait for a receiver go to the one in its place; another webhook is undisturbed,
// a third one is added and removed.
func TestWebhooksChangeWhileEventsWait(t *testing.T) {
	t.Parallel()
	const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	old, next, steady, added := receive(t), receive(t), receive(t), receive(t)
	old.away.Store(true)
	hook := func(name string, to *receiver) string {
		return fmt.Sprintf("  - {name: %s, url: %q, secret: %q, filter: {events: [new, end]}}\n", name, to.URL, secret)
	}
	const off = "mqtt: {url: 'off'}\nwebhooks:\n"
	r := reconfigure(t, off+hook("alarm", old)+hook("steady", steady))
	r.eventually(func() bool {
		all := r.status().Webhooks
		return len(all) == 2 && all[0].Queued > 2 && all[1].Delivered > 2
	})
	delivered := r.status().Webhooks[1].Delivered
	require.Empty(t, r.reload(off+hook("added", added)+hook("alarm", next)+hook("steady", steady)))
	complete := func(numbers []int) bool {
		return len(numbers) > 5 && numbers[0] == 1 && numbers[len(numbers)-1] == len(numbers)
	}
	r.eventually(func() bool { return complete(next.numbers()) && complete(steady.numbers()) && len(added.numbers()) > 0 })
	require.Empty(t, old.numbers())
	require.GreaterOrEqual(t, r.status().Webhooks[2].Delivered, delivered, "it is the same sender")
	require.Empty(t, r.reload(off+hook("alarm", next)+hook("steady", steady)))
	last := len(added.numbers())
	before := len(steady.numbers())
	r.eventually(func() bool { return len(steady.numbers()) > before+2 })
	require.Len(t, added.numbers(), last)
	require.Len(t, r.status().Webhooks, 2)
	require.NotContains(t, r.Stderr.String(), "restarting")
	steady.mu.Lock()
	received := maps.Clone(steady.all) // one that is being sent when the run ends may be sent again
	steady.mu.Unlock()
	require.NoError(t, r.Stop(syscall.SIGTERM))
	require.True(t, complete(next.numbers()), "%v", next.numbers())
	require.True(t, complete(steady.numbers()), "%v", steady.numbers())
	for id, times := range received {
		require.Equal(t, 1, times, id)
	}
}

// TestUploadAndClipsAreSwitchedOnAndOff while frames go on, with other limits of both and of the events.
func TestUploadAndClipsAreSwitchedOnAndOff(t *testing.T) {
	t.Parallel()
	storage := s3mem.New()
	require.NoError(t, storage.CreateBucket(t.Context(), "clips"))
	s3 := httptest.NewServer(gofakes3.New(storage, gofakes3.WithV4Auth(map[string]string{"hunt-id": "hunt-key"})).Server())
	defer s3.Close()
	stored := func(ending string) (n int) {
		all, err := storage.ListBucket(t.Context(), "clips", nil, gofakes3.ListBucketPage{})
		require.NoError(t, err)
		for _, object := range all.Contents {
			if strings.HasSuffix(object.Key, ending) {
				n++
			}
		}
		return n
	}
	const off = "mqtt: {url: 'off'}\n"
	r := reconfigure(t, off, "AWS_ACCESS_KEY_ID=hunt-id", "AWS_SECRET_ACCESS_KEY=hunt-key")
	r.reopens = true // it keeps its video for clips
	require.Nil(t, r.status().Upload)
	to := fmt.Sprintf("upload: {endpoint: %q, bucket: clips}\n", s3.URL)
	require.Empty(t, r.reload(off+to))
	r.eventually(func() bool { return stored(".jpg") > 0 })
	require.Zero(t, stored(".mp4"))
	require.Empty(t, r.reload(off+to+"clips: {enabled: true, before: 0s, after: 1s, max_mb: 100}\nevents: {days: 2, max_mb: 50}\n"))
	recording := func() bool {
		c := r.status().Clips
		return len(c.Cameras) == 1 && c.Cameras[0].Recording
	}
	r.eventually(func() bool { return recording() && r.status().Clips.Bytes > 0 })
	require.EqualValues(t, 100<<20, r.status().Clips.MaxBytes)
	require.Empty(t, r.reload(off+to+"clips: {enabled: true, before: 0s, after: 2s, max_mb: 90}\n"))
	require.True(t, recording())
	require.EqualValues(t, 90<<20, r.status().Clips.MaxBytes)
	require.Empty(t, r.reload(off+to)) // ends the clip
	r.eventually(func() bool { return stored(".mp4") > 0 })
	require.Empty(t, r.reload(off))
	require.Nil(t, r.status().Upload)
	require.NotContains(t, r.Stderr.String(), "restarting")
	require.NoError(t, r.Stop(syscall.SIGTERM))
}

// TestOutputsReopenedLeakNothing reopens every output over and over, and compares what the process owns before and after.
func TestOutputsReopenedLeakNothing(t *testing.T) {
	t.Parallel()
	to := receive(t)
	page := programtest.FreePort(t)
	broker := programtest.FreePort(t)
	r := &reloader{t: t, file: filepath.Join(t.TempDir(), "edge-infer.yaml"), page: fmt.Sprintf("http://127.0.0.1:%d/", page)}
	outputs := func(step int) string {
		return "name: gate\ncameras: [{name: a, uri: 'demo?width=160&height=120&fps=10'}]\n" +
			fmt.Sprintf("mqtt: {url: embedded, listen: '127.0.0.1:%d', max_packet: %d}\n", broker, 1<<20+step) +
			fmt.Sprintf("web: {listen: '127.0.0.1:%d', profiling: true, frame_rate: %d}\n", page, 5+step%2) +
			fmt.Sprintf("webhooks: [{name: a, url: '%s/%d', secret: whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw}]\n", to.URL, step%2) +
			fmt.Sprintf("upload: {endpoint: 'http://127.0.0.1:1', bucket: clips, prefix: 'p%d/'}\n", step%2) +
			fmt.Sprintf("clips: {cooldown: %ds}\nevents: {days: %d}\n", step%2, 5+step%2)
	}
	r.put(outputs(0))
	r.Program = programtest.StartWith(t, []string{"AWS_ACCESS_KEY_ID=id", "AWS_SECRET_ACCESS_KEY=key"}, "--config", r.file)
	r.PrintedAfter("web page at ")
	r.Discard()
	step := 0
	reopen := func(times int) (h holdings) {
		for range times {
			step++
			r.put(outputs(step))
			require.NoError(t, r.Command.Process.Signal(syscall.SIGHUP))
			require.Eventually(t, func() bool { return strings.Count(r.Stderr.String(), `msg="configuration changed"`) == step },
				programtest.Patience, 5*time.Millisecond, "%s", r.Stderr)
		}
		return r.held()
	}
	const times = 50
	const moving = times / 2 // what comes and goes, such as connections: a leak is one for each reopening
	before := reopen(6)
	after := reopen(times)
	deadline := time.Now().Add(programtest.Patience)
	for ; after.goroutines > before.goroutines+moving || after.files > before.files+moving; after = r.held() {
		require.True(t, time.Now().Before(deadline), "before %v, after %v\nbefore: %s\nafter: %s", before, after, before.stacks, after.stacks)
		time.Sleep(100 * time.Millisecond)
	}
	t.Logf("before %v, after %v", before, after)
	require.NotContains(t, r.Stderr.String(), "restarting")
	require.NoError(t, r.Stop(syscall.SIGTERM))
}

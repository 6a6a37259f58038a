package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
	"github.com/edge-infer/edge-infer/mqtt/mqtttest"
)

const (
	attackUser     = "owner"
	attackPassword = "the password of the owner"
	attackToken    = "0123456789abcdef-control"
	attackViewer   = "0123456789abcdef-view"

	// attackEventInterval is a time in which the demo scenes always have an event.
	attackEventInterval = 3 * time.Second
)

// steadyCameras are the cameras that are not attacked.
func steadyCameras() []string { return []string{"left", "right"} }

// arena holds the programs under attack.
type arena struct {
	t      *testing.T
	random *rand.Rand
	dir    string
	open   []net.Conn // kept by the attacks, oldest first

	// gate is a daemon with an embedded broker and a page; remote runs its network on server, through damager.
	gate, server, remote *attacked
	broker, page         string // addresses of the embedded broker and the daemon's page
	stream               *damagedStream
	damager              *damager
	events               *eventCheck // of gate
	storage              *storage
	second               *secondNetworks
	hanging              *hangingNetworks
	reloaded             bool
	timed                bool  // the run has a duration, and its rates are checked
	clock                int32 // seconds by which the clock of gate differs
}

// newArena starts everything.
func newArena(t *testing.T, random *rand.Rand) *arena {
	a := &arena{t: t, random: random, dir: t.TempDir(), broker: mqtttest.FreeAddress(t)}
	a.write("tokens", "control "+attackToken+"\nview "+attackViewer+"\n")
	a.write("password", attackPassword+"\n")
	a.stream = newDamagedStream(t)
	a.server = a.start("serve", "/metrics", func(address string) []string {
		return []string{
			"serve", "demo", "--engine", "onnxruntime=cpu", "--listen", address, "--token-file", a.path("tokens"),
			"--max-in-flight", "67108864",
		}
	})
	a.damager = newDamager(t, a.server.address)
	a.gate = a.start("the daemon", "/api/status", func(address string) []string {
		a.page = address
		a.configure("")
		return []string{"--config", a.path("edge-infer.yaml"), "--json"}
	})
	a.write("bearer", attackViewer+"\n")
	a.write("remote.yaml", "name: remote\nremote: {token_file: "+a.path("bearer")+"}\n")
	a.remote = a.start("the daemon with inference servers", "/api/status", func(address string) []string {
		servers := fmt.Sprintf("triton=http://%s/demo,http://%s/demo", a.damager.address, a.server.address)
		return []string{
			"--config", a.path("remote.yaml"), "--json", "--engine", servers, "--mqtt", "off", "--web", address,
			"--camera", "far=demo?width=320&height=240&fps=2",
		}
	})
	// A program of the build for development has 170 MB at rest, 100 MB of them code of OpenCV's libraries. Attackers with a password may have
	// 64 MiB of messages in the broker, to which garbage adds a half. The bytes in flight of serve may be doubled by it.
	a.gate.bound, a.server.bound, a.remote.bound = 330e6, 350e6, 200e6
	a.events = newEventCheck(t, a.broker, "attack", "owner", attackUser, attackPassword)
	a.storage = newStorage(t)
	a.second = newSecondNetworks(a)
	a.hanging = newHangingNetworks(a)
	return a
}

func (a *arena) path(name string) string { return filepath.Join(a.dir, name) }

func (a *arena) write(name, text string) {
	require.NoError(a.t, os.WriteFile(a.path(name), []byte(text), 0o600))
}

// configure writes the daemon's configuration; more may hold further cameras, or mistakes.
func (a *arena) configure(more string) {
	text := "name: attack\nmodel: {path: demo}\n"
	text += fmt.Sprintf("mqtt: {url: embedded, listen: %q, user: %s, password_file: %s}\n", a.broker, attackUser, a.path("password"))
	text += fmt.Sprintf("web: {listen: %q, token_file: %s}\ncameras:\n", a.page, a.path("tokens"))
	for i, name := range steadyCameras() {
		text += fmt.Sprintf("- {name: %s, uri: 'demo?width=320&height=240&fps=%d&seed=%d'}\n", name, attackCameraRate, i+1)
	}
	text += fmt.Sprintf("- {name: bad, uri: 'http://%s/stream'}\n", a.stream.address)
	a.write("edge-infer.yaml.part", text+more)
	require.NoError(a.t, os.Rename(a.path("edge-infer.yaml.part"), a.path("edge-infer.yaml")))
}

func (a *arena) programs() []*attacked { return []*attacked{a.gate, a.server, a.remote} }

// stopDamage ends what goes on between two tries.
func (a *arena) stopDamage() {
	a.stream.fault.Store(0)
	a.damager.fault.Store(0)
	if a.clock != 0 {
		a.setClock(0)
	}
	a.second.stop()
	a.hanging.stop()
	if a.reloaded {
		a.reloaded = false
		a.configure("")
		require.NoError(a.t, a.gate.Command.Process.Signal(syscall.SIGHUP))
	}
}

// end stops all programs. None may have failed, and no event may be missing.
func (a *arena) end() {
	a.events.requireComplete(a.t)
	for _, p := range []*attacked{a.gate, a.remote, a.server} {
		require.NoError(a.t, p.Command.Process.Signal(syscall.SIGTERM))
		<-p.finished
		require.NoError(a.t, p.result, "%s: %s", p.name, tail(p.Stderr))
	}
	var last struct {
		Stats struct {
			MQTT struct {
				Events struct{ Offered, Delivered, Dropped, Queued uint64 }
			}
		}
	}
	require.NoError(a.t, json.Unmarshal([]byte(a.gate.last()), &last))
	events := last.Stats.MQTT.Events
	require.Positive(a.t, events.Offered)
	require.Zero(a.t, events.Dropped)
	a.t.Logf("the daemon's events: %+v; the owner's connections lost: %d", events, a.events.lost.Load())
	a.storage.requireComplete()
	a.storage.requireCompleteAfterCuts()
}

// attacked is a program under attack.
type attacked struct {
	*programtest.Program
	name, address, page string
	bound               float64 // of the resident memory, in bytes
	finished            chan struct{}
	result              error

	mu      sync.Mutex
	cameras map[string]*cameraCount
	text    string // last line
}

// cameraCount counts the frames of a camera.
type cameraCount struct{ frames, lost, next uint64 }

// start starts a program with a free address, waits until it answers there, and reads its frames.
func (a *arena) start(name, page string, arguments func(address string) []string, environment ...string) *attacked {
	address := mqtttest.FreeAddress(a.t)
	p := &attacked{
		Program:  programtest.StartWith(a.t, append(environment, "STATE_DIRECTORY="+a.t.TempDir()), arguments(address)...),
		name:     name,
		address:  address,
		page:     "http://" + address + page,
		finished: make(chan struct{}), cameras: map[string]*cameraCount{},
	}
	go func() {
		for line := range p.Lines {
			p.count(line)
		}
		p.result = <-p.Done
		close(p.finished)
	}()
	p.ask(a.t, "start")
	return p
}

func (p *attacked) count(line string) {
	var f struct {
		Camera string
		Seq    uint64
	}
	if json.Unmarshal([]byte(line), &f) != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.text = line
	if f.Camera == "" {
		return
	}
	c := p.cameras[f.Camera]
	if c == nil {
		c = &cameraCount{next: f.Seq}
		p.cameras[f.Camera] = c
	}
	if f.Seq > c.next {
		c.lost += f.Seq - c.next
	}
	c.frames++
	c.next = f.Seq + 1
}

// counted returns the sum of some cameras' counts.
func (p *attacked) counted(cameras []string) (sum cameraCount) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, name := range cameras {
		if c := p.cameras[name]; c != nil {
			sum.frames += c.frames
			sum.lost += c.lost
		}
	}
	return sum
}

func (p *attacked) last() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text
}

func (p *attacked) ended() bool {
	select {
	case <-p.finished:
		return true
	default:
		return false
	}
}

// ask asks as the owner does, until there is an answer, and returns how long that took.
func (p *attacked) ask(t *testing.T, during string) time.Duration {
	t.Helper()
	begun := time.Now()
	var err error
	for time.Since(begun) < programtest.Patience {
		var request *http.Request
		request, err = http.NewRequestWithContext(t.Context(), http.MethodGet, p.page, nil)
		require.NoError(t, err)
		request.Header.Set("Authorization", "Bearer "+attackToken)
		var response *http.Response
		if response, err = programtest.Visitor(t).Do(request); err != nil {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		_, err = io.Copy(io.Discard, response.Body)
		response.Body.Close()
		if err == nil && response.StatusCode == http.StatusOK {
			return time.Since(begun)
		}
		err = fmt.Errorf("status %s, %w", response.Status, err)
	}
	require.NoError(t, err, "%s: %s does not answer its owner: %s", during, p.name, tail(p.Stderr))
	return 0
}

// resident returns the resident memory in bytes.
func (p *attacked) resident(t *testing.T) float64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Command.Process.Pid))
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(text), "VmRSS:")
	require.True(t, found, "%s", text)
	kibibytes, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
	require.NoError(t, err)
	return kibibytes * 1024
}

// eventCheck is a subscriber with a persistent session. It notes the numbers of the events of each run of a device.
type eventCheck struct {
	client paho.Client
	lost   atomic.Int64 // connections

	mu   sync.Mutex
	seen map[string]map[uint64]bool // by the part of the identifier before the number
	sum  int
}

// newEventCheck subscribes to a device's events.
func newEventCheck(t *testing.T, broker, device, client, user, password string) *eventCheck {
	e := &eventCheck{seen: map[string]map[uint64]bool{}}
	options := paho.NewClientOptions().AddBroker("tcp://" + broker).SetClientID(client).SetUsername(user).SetPassword(password).
		SetCleanSession(false).SetAutoReconnect(true).SetMaxReconnectInterval(100 * time.Millisecond).
		SetConnectionLostHandler(func(paho.Client, error) { e.lost.Add(1) })
	e.client = paho.NewClient(options)
	connect := e.client.Connect()
	require.True(t, connect.WaitTimeout(programtest.Patience))
	require.NoError(t, connect.Error())
	subscribe := e.client.Subscribe("edge-infer/"+device+"/+/events", 1, func(_ paho.Client, m paho.Message) { e.note(m.Payload()) })
	require.True(t, subscribe.WaitTimeout(programtest.Patience))
	require.NoError(t, subscribe.Error())
	t.Cleanup(e.close)
	return e
}

func (e *eventCheck) close() { e.client.Disconnect(10) }

func (e *eventCheck) note(payload []byte) {
	var event struct{ ID string }
	if json.Unmarshal(payload, &event) != nil {
		return
	}
	at := strings.LastIndexByte(event.ID, '-')
	number, err := strconv.ParseUint(event.ID[at+1:], 10, 64)
	if at < 0 || err != nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	run := event.ID[:at]
	if e.seen[run] == nil {
		e.seen[run] = map[uint64]bool{}
	}
	e.seen[run][number] = true
	e.sum++
}

func (e *eventCheck) count() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.sum
}

// missing returns how many events arrived, of how many runs, and the numbers before the last one of a run that did not.
func (e *eventCheck) missing() (arrived, runs int, missing []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for run, numbers := range e.seen {
		var first, last uint64
		for n := range numbers {
			if first == 0 || n < first {
				first = n
			}
			last = max(last, n)
		}
		arrived += len(numbers)
		for n := first; n < last; n++ {
			if !numbers[n] {
				missing = append(missing, fmt.Sprintf("%s-%d", run, n))
			}
		}
	}
	return arrived, len(e.seen), missing
}

func (e *eventCheck) requireComplete(t *testing.T) {
	t.Helper()
	var arrived, runs int
	var missing []string
	assert.Eventually(t, func() bool { arrived, runs, missing = e.missing(); return len(missing) == 0 }, programtest.Patience, time.Second)
	require.Empty(t, missing, "lost events")
	t.Logf("%d events of %d runs arrived, none is missing", arrived, runs)
}

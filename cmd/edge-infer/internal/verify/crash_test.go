package verify

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/sink"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/webhook"
	"github.com/edge-infer/edge-infer/internal/crashtest"
	"github.com/edge-infer/edge-infer/mqtt/mqtttest"
	"github.com/edge-infer/edge-infer/mqtt/spool"
)

// published is an output that writes events into a file, which a kill does not take back.
type published struct {
	t    testing.TB
	file *os.File
}

func (p *published) Event(e *sink.Event) {
	m := &e.Message
	id := m.ID
	if id == "" {
		id = "-"
	}
	_, err := fmt.Fprintln(p.file, m.Sequence, m.Type, id, m.Label, *m.Verified)
	require.NoError(p.t, err)
}

func crashGate(t testing.TB, address, directory string) *Gate {
	file, err := os.OpenFile(filepath.Join(directory, "published"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	g := &Gate{
		Endpoint: webhook.Endpoint{URL: address, Secret: secret}, Device: "gate", Timeout: 5 * time.Minute, Logger: mqtttest.Discard(),
		Journal: spool.Config{Directory: filepath.Join(directory, "journal"), Commit: 2 * time.Millisecond},
		To:      []sink.Output{&published{t, file}},
	}
	require.NoError(t, g.Open())
	return g
}

// TestCrashChild is the process that TestKillsLoseNoHeldEvent kills. It hands over the two events of numbered objects and prints a number
// when the events of that object and all before it are on disk.
func TestCrashChild(t *testing.T) {
	directory := os.Getenv("EDGE_INFER_CRASH_VERIFY")
	if directory == "" {
		t.Skip("runs only as a child of TestKillsLoseNoHeldEvent")
	}
	g := crashGate(t, os.Getenv("EDGE_INFER_CRASH_SERVICE"), directory)
	go g.Run(context.Background())
	first, err := strconv.ParseUint(os.Getenv("EDGE_INFER_CRASH_FIRST"), 10, 64)
	require.NoError(t, err)
	for n := first; ; n++ {
		object := fmt.Sprint(n)
		g.Event(event("new", object, n))
		g.Image(photo(object), func(*sink.ObjectImage) {})
		g.Event(event("end", object, n))
		if n%7 == 0 {
			require.NoError(t, g.journal.records.Sync())
			fmt.Println("safe", n)
		}
		time.Sleep(time.Duration(rand.IntN(4000)) * time.Microsecond)
	}
}

// TestKillsLoseNoHeldEvent kills a process with questions in flight. Every event that was on disk must be published, unless its object was
// dropped, no event under two ids and no id for two events, nothing unverified, and nothing of dropped objects.
func TestKillsLoseNoHeldEvent(t *testing.T) {
	service := newService(t, func(w http.ResponseWriter, q *asking) {
		time.Sleep(time.Duration(rand.IntN(10_000)) * time.Microsecond)
		switch q.Data.Seq % 3 {
		case 0:
			fmt.Fprint(w, `{"verdict": "drop"}`)
		case 1:
			fmt.Fprint(w, `{"verdict": "relabel", "label": "Ann"}`)
		default:
			fmt.Fprint(w, `{"verdict": "confirm"}`)
		}
	})
	directory := t.TempDir()
	const rounds = 24
	var safe []uint64
	for round := range rounds {
		within := []time.Duration{60 * time.Millisecond, 300 * time.Millisecond}[round%2] // before and after records are forgotten
		safe = append(safe, crashtest.Kill(t, "TestCrashChild", "safe", within, "EDGE_INFER_CRASH_VERIFY="+directory,
			"EDGE_INFER_CRASH_SERVICE="+service.URL, fmt.Sprintf("EDGE_INFER_CRASH_FIRST=%d", (round+1)*1_000_000))...)
	}
	g := crashGate(t, service.URL, directory)
	inFlight := g.Status().Held
	run(t, g)
	eventually(t, func() bool { return g.Status().Held == 0 }, "the rest is asked about")

	file, err := os.Open(filepath.Join(directory, "published"))
	require.NoError(t, err)
	defer file.Close()
	type which struct {
		number uint64
		kind   string
	}
	ids, owners := map[which]string{}, map[string]which{}
	repeats := 0
	for scanner := bufio.NewScanner(file); scanner.Scan(); {
		var w which
		var id, label string
		var verified bool
		_, err := fmt.Sscan(scanner.Text(), &w.number, &w.kind, &id, &label, &verified)
		require.NoError(t, err)
		require.True(t, verified)
		require.NotZero(t, w.number%3, "its object was dropped")
		require.Equal(t, map[uint64]string{1: "Ann", 2: "person"}[w.number%3], label)
		if before, known := ids[w]; known {
			require.Equal(t, before, id, "published under two ids")
			repeats++
			continue
		}
		if owner, taken := owners[id]; taken && id != "-" {
			require.Failf(t, "two events with one id", "%v and %v", owner, w)
		}
		if w.kind == "end" {
			require.Contains(t, ids, which{w.number, "new"}, "out of order")
		}
		ids[w], owners[id] = id, w
	}
	missing := 0
	for _, n := range safe {
		for k := n; k > n-7 && k/1_000_000 == n/1_000_000; k-- {
			for _, kind := range []string{"new", "end"} {
				if _, found := ids[which{k, kind}]; !found && k%3 != 0 {
					missing++
				}
			}
		}
	}
	assert.Zero(t, missing, "events that were on disk")
	t.Logf("%d kills: %d events published, %d twice under the same id, %d objects in flight at the last one", rounds, len(ids), repeats, inFlight)
}

package mqtt

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/internal/crashtest"
	"github.com/edge-infer/edge-infer/mqtt/mqtttest"
	"github.com/edge-infer/edge-infer/mqtt/payload"
	"github.com/edge-infer/edge-infer/mqtt/spool"
)

// TestCrashChild is the process that TestKilledProcessLosesNoEvent kills. It queues numbered events as fast as it can and prints a number
// when that event and all before it are safe.
func TestCrashChild(t *testing.T) {
	directory := os.Getenv("EDGE_INFER_CRASH_SPOOL")
	if directory == "" {
		t.Skip("runs only as a child of TestKilledProcessLosesNoEvent")
	}
	c := testClient(os.Getenv("EDGE_INFER_CRASH_BROKER"))
	c.Spool = spool.Config{Directory: directory, Commit: 2 * time.Millisecond, MaxBytes: 4 << 20}
	start(t, c)
	first, err := strconv.ParseUint(os.Getenv("EDGE_INFER_CRASH_FIRST"), 10, 64)
	require.NoError(t, err)
	for n := first; ; n++ {
		c.Event(&payload.Event{Type: "update", Camera: "cam0", Label: "person", Sequence: n, Time: time.Now()})
		if n%7 == 0 {
			require.NoError(t, c.Sync())
			fmt.Println("safe", n)
		}
		time.Sleep(time.Duration(rand.IntN(300)) * time.Microsecond)
	}
}

// TestKilledProcessLosesNoEvent kills a publishing process at random moments, with and without a broker. Every event that was safe must
// arrive, in order; repeats carry the same id. The rounds share one spool, so they stay in one function.
func TestKilledProcessLosesNoEvent(t *testing.T) {
	rounds := 10
	if _, full := faultTime(t); full {
		rounds = 100
	}
	broker := startBroker(t, "")
	sub := mqtttest.Subscribe(t, broker.URL(), "edge-infer/gate/cam0/events")
	directory := t.TempDir()
	var safe []uint64
	for round := range rounds {
		address := broker.URL()
		if round%2 == 1 {
			address = "tcp://" + mqtttest.FreeAddress(t)
		}
		safe = append(safe, crashtest.Kill(t, "TestCrashChild", "safe", 80*time.Millisecond, "EDGE_INFER_CRASH_SPOOL="+directory,
			"EDGE_INFER_CRASH_BROKER="+address, fmt.Sprintf("EDGE_INFER_CRASH_FIRST=%d", (round+1)*1_000_000))...)
	}
	require.NotEmpty(t, safe)

	c := testClient(broker.URL())
	c.Spool = spool.Config{Directory: directory, MaxBytes: 4 << 20}
	start(t, c)
	require.Eventually(t, func() bool { return c.Accounting().Events.Queued == 0 }, 2*mqtttest.Patience, 10*time.Millisecond)
	restored := c.Accounting().Events.Offered
	c.Event(&payload.Event{Type: "end", Camera: "cam0", Sequence: 1 << 40})
	require.Eventually(t, func() bool { return strings.Contains(sub.Last("edge-infer/gate/cam0/events"), `"type":"end"`) }, mqtttest.Patience,
		time.Millisecond)
	balanced(t, c)

	ids := map[uint64]string{}
	owners := map[string]uint64{}
	var highest uint64
	repeats, replayed := 0, 0
	for _, payload := range sub.Messages("edge-infer/gate/cam0/events") {
		var e struct {
			ID       string
			Seq      uint64
			Replayed bool
		}
		require.NoError(t, json.Unmarshal([]byte(payload), &e))
		if e.Replayed {
			replayed++
		}
		if id, known := ids[e.Seq]; known {
			repeats++
			require.Equal(t, id, e.ID, "a repeat with another id")
			continue
		}
		owner, taken := owners[e.ID]
		require.False(t, taken, "events %d and %d have the id %s", owner, e.Seq, e.ID)
		require.Greater(t, e.Seq, highest, "out of order")
		ids[e.Seq], owners[e.ID], highest = e.ID, e.Seq, e.Seq
	}
	checked := 0
	for _, n := range safe {
		// Numbers 7 apart are printed; all before a printed one of the same process are safe too.
		for k := n; k > n-7 && k/1_000_000 == n/1_000_000; k-- {
			require.Contains(t, ids, k, "a safe event was lost")
			checked++
		}
	}
	assert.Positive(t, replayed)
	t.Logf("%d kills: %d events safe, %d arrived, %d repeats, %d replayed, %d restored at the end", rounds, checked, len(ids), repeats,
		replayed, restored)
}

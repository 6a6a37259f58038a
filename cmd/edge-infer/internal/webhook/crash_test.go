package webhook

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/internal/backoff"
	"github.com/edge-infer/edge-infer/internal/crashtest"
	"github.com/edge-infer/edge-infer/mqtt/mqtttest"
	"github.com/edge-infer/edge-infer/mqtt/spool"
)

// TestCrashChild is the process that TestKillsLoseNoEvent kills. It hands over numbered events and prints a number when that event and all
// before it are on disk.
func TestCrashChild(t *testing.T) {
	directory := os.Getenv("EDGE_INFER_CRASH_WEBHOOK")
	if directory == "" {
		t.Skip("runs only as a child of TestKillsLoseNoEvent")
	}
	s := crashSender(os.Getenv("EDGE_INFER_CRASH_RECEIVER"), directory)
	require.NoError(t, s.Open())
	go s.Run(context.Background())
	first, err := strconv.ParseUint(os.Getenv("EDGE_INFER_CRASH_FIRST"), 10, 64)
	require.NoError(t, err)
	for n := first; ; n++ {
		s.Event(event("new", n))
		if n%7 == 0 {
			require.NoError(t, s.events.Sync())
			fmt.Println("safe", n)
		}
		time.Sleep(time.Duration(rand.IntN(1000)) * time.Microsecond)
	}
}

func crashSender(url, directory string) *Sender {
	return &Sender{
		Name: "alarm", Device: "gate", URL: url, Secret: secret, Spool: spool.Config{Directory: directory, Commit: 2 * time.Millisecond},
		Logger: mqtttest.Discard(), retry: backoff.Exponential{Min: time.Millisecond, Max: 5 * time.Millisecond},
	}
}

// TestKillsLoseNoEvent kills a process with deliveries in flight, to a receiver that is slow, or fails after it has taken the event. Every
// event that was on disk must arrive, in order, and repeats have the same id.
func TestKillsLoseNoEvent(t *testing.T) {
	rounds := 6
	if text := os.Getenv("EDGE_INFER_TEST_KILLS"); text != "" {
		var err error
		rounds, err = strconv.Atoi(text)
		require.NoError(t, err)
	}
	to := newReceiver(t, func(w http.ResponseWriter, _ *message) {
		time.Sleep(time.Duration(rand.IntN(3000)) * time.Microsecond)
		if rand.IntN(5) == 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	directory := t.TempDir()
	var safe []uint64
	for round := range rounds {
		safe = append(safe, crashtest.Kill(t, "TestCrashChild", "safe", 150*time.Millisecond, "EDGE_INFER_CRASH_WEBHOOK="+directory,
			"EDGE_INFER_CRASH_RECEIVER="+to.URL, fmt.Sprintf("EDGE_INFER_CRASH_FIRST=%d", (round+1)*1_000_000))...)
	}
	s := crashSender(to.URL, directory)
	require.NoError(t, s.Open())
	defer s.Close()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go s.Run(ctx)
	eventually(t, func() bool { return s.Status().Queued == 0 }, "the rest is delivered")

	ids, owners := map[uint64]string{}, map[string]uint64{}
	repeats, highest := 0, uint64(0)
	for _, m := range to.received() {
		if id, known := ids[m.Data.Seq]; known {
			repeats++
			require.Equal(t, id, m.id, "a repeat with another id")
			continue
		}
		owner, taken := owners[m.id]
		require.False(t, taken, "events %d and %d have the id %s", owner, m.Data.Seq, m.id)
		require.Greater(t, m.Data.Seq, highest, "out of order")
		ids[m.Data.Seq], owners[m.id], highest = m.id, m.Data.Seq, m.Data.Seq
	}
	for _, n := range safe {
		for k := n; k > n-7 && k/1_000_000 == n/1_000_000; k-- {
			require.Contains(t, ids, k, "an event on disk was lost")
		}
	}
	assert.Positive(t, repeats)
	t.Logf("%d kills: %d events arrived, %d repeats", rounds, len(ids), repeats)
}

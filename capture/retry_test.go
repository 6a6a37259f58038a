package capture

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/edge-infer/edge-infer/internal/backoff"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// quick is a backoff for tests.
var quick = backoff.Exponential{Min: time.Millisecond, Max: 20 * time.Millisecond}

func TestOpenTimeoutGrows(t *testing.T) {
	silent := &session{}
	c := &Camera{Retry: quick}
	var tries retries
	var given []time.Duration
	for range 6 {
		given = append(given, tries.openTimeout(time.Second))
		tries.pause(c, silent, &Error{Kind: ErrStalled})
	}
	assert.Equal(t, []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 8 * time.Second, 8 * time.Second}, given)
	settled := &session{}
	settled.first.Store(1) // images since the machine was started
	tries.pause(c, settled, &Error{Kind: ErrUnavailable})
	assert.Equal(t, time.Second, tries.openTimeout(time.Second))
	assert.Equal(t, 1, tries.failures, "the next try comes soon")
}

// TestLongestPause: a CSI camera is opened again within ten seconds, however often it has failed.
func TestLongestPause(t *testing.T) {
	for uri, most := range map[string]time.Duration{"csi://0": 5 * time.Second, "rtsp://127.0.0.1/": 30 * time.Second} {
		c := &Camera{URI: uri}
		c.prepare()
		for failures := range 100 {
			assert.LessOrEqual(t, c.Retry.After(failures), most)
		}
		assert.GreaterOrEqual(t, c.Retry.After(100), most/2)
		require.NoError(t, c.Close())
	}
}

// TestWaitAfterDenialGrows: the pause after a denial is that of denials, and other failures between them do not shorten it.
func TestWaitAfterDenialGrows(t *testing.T) {
	c := &Camera{Retry: quick, DeniedRetry: backoff.Exponential{Min: time.Minute, Max: 4 * time.Minute}}
	var tries retries
	denied, other := &Error{Kind: ErrDenied}, &Error{Kind: ErrUnavailable}
	for _, most := range []time.Duration{1, 2, 4, 4} {
		pause := tries.pause(c, &session{}, denied)
		assert.GreaterOrEqual(t, pause, most*time.Minute/2)
		assert.LessOrEqual(t, pause, most*time.Minute)
		assert.LessOrEqual(t, tries.pause(c, &session{}, other), quick.Max)
	}
	defaults := &Camera{}
	defaults.prepare()
	assert.GreaterOrEqual(t, defaults.DeniedRetry.After(0), time.Minute)
	require.NoError(t, defaults.Close())
}

// TestOnlySilentSourcesStall: time in which this process was stopped is not the source's silence, and neither is time in which it waits.
func TestOnlySilentSourcesStall(t *testing.T) {
	s := &session{}
	interval := 100 * time.Millisecond
	q := stallTimer{checked: Monotonic() - int64(time.Hour)}
	assert.Equal(t, 2*interval, q.update(s, interval))
	q.checked -= int64(50 * time.Millisecond)
	assert.GreaterOrEqual(t, q.update(s, interval), 250*time.Millisecond)
	s.blocked.Store(true)
	q.checked -= int64(interval)
	assert.Zero(t, q.update(s, interval))
	s.blocked.Store(false)
	q.checked -= int64(interval)
	assert.GreaterOrEqual(t, q.update(s, interval), interval)
	s.progress.Add(1)
	assert.Zero(t, q.update(s, interval))
}

package capture

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestWakeupWakesForEverySignal: of any number of threads that ring, none is overheard, also when it rings while the waiter falls asleep.
func TestWakeupWakesForEverySignal(t *testing.T) {
	const ringers, rings = 4, 2000
	var wakeup Wakeup
	var work sync.Mutex
	made := 0
	for range ringers {
		go func() {
			for range rings {
				work.Lock()
				made++
				work.Unlock()
				wakeup.Signal()
			}
		}()
	}
	all := make(chan struct{})
	go func() {
		defer close(all)
		for taken := 0; taken < ringers*rings; {
			wakeup.Wait()
			work.Lock()
			taken, made = taken+made, 0
			work.Unlock()
		}
	}()
	select {
	case <-all:
	case <-time.After(time.Minute):
		require.Fail(t, "a ring was overheard")
	}
}

func TestWakeupWaitsForNewSignal(t *testing.T) {
	var wakeup Wakeup
	wakeup.Signal()
	wakeup.Signal()
	wakeup.Wait() // two signals without a Wait in between count as one
	woken := make(chan struct{})
	go func() {
		wakeup.Wait()
		close(woken)
	}()
	require.Eventually(t, func() bool { return wakeup.state.Load() == waiting }, 30*time.Second, time.Millisecond)
	select {
	case <-woken:
		require.Fail(t, "nobody rang")
	default:
	}
	wakeup.Signal()
	select {
	case <-woken:
	case <-time.After(30 * time.Second):
		require.Fail(t, "the ring was overheard")
	}
	assert.Zero(t, testing.AllocsPerRun(100, func() { wakeup.Signal(); wakeup.Wait() }))
}

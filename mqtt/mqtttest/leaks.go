package mqtttest

import (
	"runtime"
	"strings"
	"testing"
	"time"
)

// NoLeaks fails the test when goroutines that were started in it outlive it.
func NoLeaks(t testing.TB) {
	t.Helper()
	before := runtime.NumGoroutine()
	t.Cleanup(func() {
		deadline := time.Now().Add(Patience)
		for runtime.NumGoroutine() > before {
			if time.Now().After(deadline) {
				buf := make([]byte, 1<<20)
				stacks := strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n")
				t.Errorf("%d goroutines at the start, %d at the end:\n%s", before, runtime.NumGoroutine(), strings.Join(stacks, "\n\n"))
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	})
}

package backoff

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestBackoff(t *testing.T) {
	b := Exponential{Min: 100 * time.Millisecond, Max: time.Second}
	for failures, most := range map[int]time.Duration{0: 100, 1: 200, 2: 400, 3: 800, 4: 1000, 100: 1000} {
		for range 100 {
			pause := b.After(failures)
			assert.LessOrEqual(t, pause, most*time.Millisecond)
			assert.GreaterOrEqual(t, pause, most*time.Millisecond/2)
		}
	}
	short := Exponential{Min: time.Second, Max: time.Minute}
	assert.Equal(t, short, Exponential{}.OrElse(short))
	assert.Equal(t, Exponential{Min: 2 * time.Second, Max: time.Minute}, Exponential{Min: 2 * time.Second}.OrElse(short))
	assert.Equal(t, Exponential{Min: time.Hour, Max: time.Hour}, Exponential{Min: time.Hour, Max: time.Second}.OrElse(short))
}

// Pauses stay within Min/2 and Max for long pauses and many failures.
func TestPausesStayBounded(t *testing.T) {
	for _, b := range []Exponential{{Min: 2 * time.Minute, Max: 30 * time.Minute}, {Min: 24 * time.Hour, Max: 8760 * time.Hour}, {}} {
		for failures := range 200 {
			pause := b.After(failures)
			assert.GreaterOrEqual(t, pause, b.Min/2, "%d failures", failures)
			assert.LessOrEqual(t, pause, b.Max, "%d failures", failures)
		}
	}
}

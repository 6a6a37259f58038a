package capture

import (
	"math/rand/v2"
	"time"
)

// Backoff bounds the pauses between the tries of something that fails. A pause doubles from Min to Max with each failure in a row, and a
// random part of up to half is taken off, so that many cameras do not come back at once.
type Backoff struct {
	Min, Max time.Duration
}

// orElse is the backoff with what is not set taken from another.
func (b Backoff) orElse(other Backoff) Backoff {
	if b.Min <= 0 {
		b.Min = other.Min
	}
	if b.Max < b.Min {
		b.Max = max(b.Min, other.Max)
	}
	return b
}

// after is the pause after that many failures before the present one.
func (b Backoff) after(failures int) time.Duration {
	pause := b.Max
	if failures < 30 {
		pause = min(b.Min<<failures, b.Max)
	}
	return pause/2 + rand.N(pause/2+1)
}

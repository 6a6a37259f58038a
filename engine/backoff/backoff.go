// Package backoff is how long to wait before something that has failed is tried again. It stands here because cameras and the broker, which
// know nothing of each other, both come back by it.
package backoff

import (
	"math/rand/v2"
	"time"
)

// Exponential bounds the pauses between tries. A pause doubles from Min to Max with each failure in a row, and has jitter.
type Exponential struct {
	Min, Max time.Duration
}

// OrElse is the backoff with what is not set taken from another.
func (b Exponential) OrElse(other Exponential) Exponential {
	if b.Min <= 0 {
		b.Min = other.Min
	}
	if b.Max < b.Min {
		b.Max = max(b.Min, other.Max)
	}
	return b
}

// After is the pause after that many failures before the present one.
func (b Exponential) After(failures int) time.Duration {
	pause := b.Max
	if b.Min <= b.Max>>failures { // asked this way round because doubling overflows
		pause = b.Min << failures
	}
	return Jitter(pause)
}

// Jitter takes a random part of up to half off a pause, so that many who wait for the same thing do not come back at once.
func Jitter(pause time.Duration) time.Duration { return pause/2 + rand.N(pause/2+1) }

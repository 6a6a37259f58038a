// Package backoff computes the pauses between attempts of an operation that keeps failing. Cameras, networks and the broker connection
// share it.
package backoff

import (
	"math/rand/v2"
	"time"
)

// Exponential is an exponential backoff with jitter: the pause doubles from Min to Max with each consecutive failure.
type Exponential struct {
	Min, Max time.Duration
}

// OrElse returns b with unset fields taken from other.
func (b Exponential) OrElse(other Exponential) Exponential {
	if b.Min <= 0 {
		b.Min = other.Min
	}
	if b.Max < b.Min {
		b.Max = max(b.Min, other.Max)
	}
	return b
}

// After returns the pause after another failure that follows this many failures in a row.
func (b Exponential) After(failures int) time.Duration {
	pause := b.Max
	if b.Min <= b.Max>>failures { // compared by shifting Max because doubling Min can overflow
		pause = b.Min << failures
	}
	return Jitter(pause)
}

// Jitter shortens a pause by a random part of up to half of it, so that many clients do not retry at the same time.
func Jitter(pause time.Duration) time.Duration { return pause/2 + rand.N(pause/2+1) }

package bench

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// extent is the length of a run: a time, or a number of frames like 5000x.
type extent struct {
	time   time.Duration
	frames uint64
}

// String implements pflag.Value.
func (e *extent) String() string {
	if e.frames > 0 {
		return strconv.FormatUint(e.frames, 10) + "x"
	}
	return e.time.String()
}

// Set implements pflag.Value.
func (e *extent) Set(text string) error {
	if digits, counted := strings.CutSuffix(text, "x"); counted {
		n, err := strconv.ParseUint(digits, 10, 40)
		if err != nil || n == 0 {
			return errors.New("must be a time like 10s or a number of frames like 5000x")
		}
		*e = extent{frames: n}
		return nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return errors.New("must be a time like 10s or a number of frames like 5000x")
	}
	*e = extent{time: d}
	return nil
}

// Type implements pflag.Value.
func (*extent) Type() string { return "time or frames" }

// reached reports whether the run is complete after a number of frames and a time.
func (e *extent) reached(frames uint64, since time.Duration) bool {
	if e.frames > 0 {
		return frames >= e.frames
	}
	return since >= e.time
}

package track

// Profile is what kind of camera a tracker is for.
type Profile string

// The profiles. docs/BENCHMARKS.md has what they were chosen by.
const (
	// Static is a camera that stays where it is.
	Static Profile = "static"
	// PTZ is a camera that turns, zooms or shakes: its motion is measured on the images and told by Move.
	PTZ Profile = "ptz"
	// LowRate is a camera of few images a second: what goes far between two is looked for farther away.
	LowRate Profile = "low-rate"
)

// Profiles are all, the usual one first.
func Profiles() []string { return []string{string(Static), string(PTZ), string(LowRate)} }

// lowRateBufferScale is the Reach of LowRate.
const lowRateBufferScale = 2

// BufferScale is what Tracker's should be.
func (p Profile) BufferScale() float32 {
	if p == LowRate {
		return lowRateBufferScale
	}
	return DefaultBufferScale
}

package track

// Profile is a preset for a kind of camera.
type Profile string

// The profiles; docs/BENCHMARKS.md shows how they were chosen.
const (
	// Static is a fixed camera.
	Static Profile = "static"
	// PTZ is a camera that turns, zooms or shakes: its motion is measured on the images and passed to CompensateMotion.
	PTZ Profile = "ptz"
	// LowRate is a camera with a low frame rate: objects are searched at larger distances.
	LowRate Profile = "low-rate"
)

// Profiles returns all profiles, the default first.
func Profiles() []string { return []string{string(Static), string(PTZ), string(LowRate)} }

// lowRateBufferScale is the BufferScale of LowRate.
const lowRateBufferScale = 2

// BufferScale returns the value for Tracker.BufferScale.
func (p Profile) BufferScale() float32 {
	if p == LowRate {
		return lowRateBufferScale
	}
	return DefaultBufferScale
}

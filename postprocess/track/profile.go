package track

// Profile is a preset for a kind of camera.
type Profile string

// The profiles.
const (
	// Static is a fixed camera.
	Static Profile = "static"
	// PTZ is a camera that turns, zooms or shakes: its motion is measured on the images and passed to CompensateMotion.
	PTZ Profile = "ptz"
)

// Profiles returns all profiles, the default first.
func Profiles() []string { return []string{string(Static), string(PTZ)} }

package scene

// Class is the kind of a part, and its number in label files and in the demo model.
type Class uint8

// The part classes.
const (
	Bolt Class = iota
	Nut
	Washer
	Gear
	Bearing
	Spring
	classes
)

var names = [classes]string{"bolt", "nut", "washer", "gear", "bearing", "spring"}

// String returns the label.
func (c Class) String() string {
	if c < classes {
		return names[c]
	}
	return "unknown"
}

// Labels returns the labels by class number. The caller owns the slice.
func Labels() []string { return append([]string(nil), names[:]...) }

package topic

// Frigate is the prefix of Frigate's topics, possibly with several levels; empty disables them.
type Frigate string

// Available holds online, offline (the will) or stopped (a clean end).
func (f Frigate) Available() string { return string(f) + "/available" }

// Stats holds rates and times.
func (f Frigate) Stats() string { return string(f) + "/stats" }

// Events holds the events of all cameras.
func (f Frigate) Events() string { return string(f) + "/events" }

// Count holds how many objects of a label a camera or a zone has.
func (f Frigate) Count(place, label string) string { return f.level(place) + Level(label) }

// Active holds how many of these move.
func (f Frigate) Active(place, label string) string { return f.Count(place, label) + "/active" }

// Snapshot holds the newest JPEG of a label.
func (f Frigate) Snapshot(camera, label string) string { return f.Count(camera, label) + "/snapshot" }

// Status holds online, or offline while there is no image of the camera.
func (f Frigate) Status(camera string) string { return f.level(camera) + "status/detect" }

// State holds the value of a control that is in force.
func (f Frigate) State(camera, control string) string { return f.level(camera) + control + "/state" }

// Commands returns the filter of the commands for a control of any camera.
func (f Frigate) Commands(control string) string { return string(f) + "/+/" + control + "/set" }

func (f Frigate) level(place string) string { return string(f) + "/" + Level(place) + "/" }

package track

import "time"

// Hold lets time pass without motion: objects keep their positions and do not age. It replaces Update for images without inference because
// nothing moves.
func (t *Tracker) Hold(at time.Time) {
	if !t.started || !at.After(t.at) {
		return
	}
	passed := at.Sub(t.at)
	for i := range t.objects {
		o := &t.objects[i]
		o.Last, o.appearance.at = o.Last.Add(passed), o.appearance.at.Add(passed)
	}
	t.at = at
}

package track

import "time"

// Hold lets time pass in which nothing has moved: the objects stay where they are, and none of them gets older by it. It takes the place of
// Update for images that were not looked at because they are still.
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

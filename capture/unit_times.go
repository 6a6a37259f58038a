package capture

import (
	"bytes"
	"sync"
	"time"
)

// UnitTimes keeps the times of the access units that a decoder works on, and counts those whose image never came. The zero value is ready;
// all methods are safe for concurrent use.
type UnitTimes struct {
	mu    sync.Mutex
	units [maxReordered]unitTime
	next  uint64 // number of the next unit
	lost  uint64
	gap   uint64 // units that may still lack data that was lost
}

// maxDamaged is the number of units after a gap without a key frame for which images count as damaged: some cameras send no key frames, and
// renew the image part by part.
const maxDamaged = 300

// maxReordered is more than the number of units that a decoder may hold.
const maxReordered = 64

// unitTime is when the image of a unit was taken.
type unitTime struct {
	pts      time.Duration
	received int64
	camera   time.Time
	waiting  bool // its image has not come
	damaged  bool // its image lacks data that was lost
}

// Add keeps the times of a unit and returns its number. A unit that is no image, such as one with parameter sets only, is not waited for.
func (t *UnitTimes) Add(unit *Unit) uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	number := t.next
	t.next++
	at := &t.units[number%maxReordered]
	t.lose(at)
	*at = unitTime{pts: unit.PTS, received: unit.Received, camera: unit.Camera, waiting: unit.hasImage(), damaged: t.lacks(unit)}
	return number
}

// lacks reports whether the image of a unit lacks data that was lost, although a decoder may not notice. What was lost before a key frame
// is an image that never comes. The lock is held.
func (t *UnitTimes) lacks(unit *Unit) bool {
	switch {
	case unit.Key:
		if unit.Gap {
			t.lost++
		}
		t.gap = 0
	case unit.Gap:
		t.gap = maxDamaged
	case t.gap > 0:
		t.gap--
	}
	return t.gap > 0
}

// lose gives a unit's image up. The lock is held.
func (t *UnitTimes) lose(at *unitTime) {
	if at.waiting {
		t.lost++
	}
	at.waiting = false
}

// Find returns the number of the unit with a presentation time, or false if it is not among the newest.
func (t *UnitTimes) Find(pts time.Duration) (number uint64, found bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for back := range min(t.next, maxReordered) {
		number = t.next - 1 - back
		if t.units[number%maxReordered].pts == pts {
			return number, true
		}
	}
	return 0, false
}

// Take gives a frame the times of its unit, whose image has come. A frame that is nil is an image that cannot be used.
func (t *UnitTimes) Take(number uint64, f *Frame) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := &t.units[number%maxReordered]
	at.waiting = false
	if f == nil {
		return
	}
	f.Captured, f.Position = at.received, at.pts
	f.Time, f.CameraTime = at.camera, !at.camera.IsZero()
	f.Damaged = f.Damaged || at.damaged
}

// End gives the images up that have not come.
func (t *UnitTimes) End() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.units {
		t.lose(&t.units[i])
	}
}

// Lost returns the number of images since the last call that have not come while maxReordered later units were decoded, or before End.
func (t *UnitTimes) Lost() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	lost := t.lost
	t.lost = 0
	return lost
}

// hasImage reports whether the unit has a part of an image. It reads up to the first one.
func (u *Unit) hasImage() bool {
	if u.Codec != H264 && u.Codec != H265 {
		return len(u.Data) > 0
	}
	startCode := []byte{0, 0, 1}
	for data := u.Data; ; {
		at := bytes.Index(data, startCode)
		if at < 0 || at+len(startCode) >= len(data) {
			return false
		}
		data = data[at+len(startCode):]
		if u.Codec == H264 && data[0]&31 >= 1 && data[0]&31 <= 5 || u.Codec == H265 && data[0]>>1&63 < 32 {
			return true
		}
	}
}

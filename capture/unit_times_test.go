package capture

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// unitAt is a unit with a part of an image.
func unitAt(pts time.Duration) *Unit {
	return &Unit{Codec: H264, Data: []byte{0, 0, 0, 1, 9, 16, 0, 0, 1, 0x65, 1}, PTS: pts, Received: int64(pts) + 7}
}

func TestUnitTimes(t *testing.T) {
	var times UnitTimes
	_, found := times.Find(0)
	assert.False(t, found)
	camera := time.Unix(1000, 0)
	first := unitAt(-time.Second)
	first.Camera = camera
	assert.Equal(t, uint64(0), times.Add(first))
	assert.Equal(t, uint64(1), times.Add(unitAt(time.Second)))
	number, found := times.Find(-time.Second)
	assert.True(t, found)
	var f Frame
	times.Take(number, &f)
	assert.Equal(t, Frame{Captured: first.Received, Position: -time.Second, Time: camera, CameraTime: true}, f)
	times.Take(1, &f)
	assert.Equal(t, Frame{Captured: int64(time.Second) + 7, Position: time.Second}, f)
	_, found = times.Find(2 * time.Second)
	assert.False(t, found)
	times.End()
	assert.Zero(t, times.Lost())
}

// Units whose image does not come are counted once later units have taken their place, and at the end.
func TestUnitsThatAreLost(t *testing.T) {
	var times UnitTimes
	for n := range maxReordered + 10 {
		times.Add(unitAt(time.Duration(n)))
	}
	assert.Equal(t, uint64(10), times.Lost())
	assert.Zero(t, times.Lost())
	times.Take(20, nil) // came, but cannot be used
	_, found := times.Find(5)
	assert.False(t, found, "forgotten")
	times.End()
	assert.Equal(t, uint64(maxReordered-1), times.Lost())
	times.End()
	assert.Zero(t, times.Lost())
}

// TestImagesAfterAGap: images after a loss are damaged up to the next key frame, or for a while where none comes. What was lost before a
// key frame is counted alone.
func TestImagesAfterAGap(t *testing.T) {
	var times UnitTimes
	damaged := func(unit *Unit) bool {
		var f Frame
		times.Take(times.Add(unit), &f)
		return f.Damaged
	}
	unit := func(key, gap bool) *Unit {
		u := unitAt(0)
		u.Key, u.Gap = key, gap
		return u
	}
	assert.False(t, damaged(unit(true, false)))
	assert.False(t, damaged(unit(false, false)))
	assert.True(t, damaged(unit(false, true)))
	assert.True(t, damaged(unit(false, false)))
	assert.Zero(t, times.Lost())
	assert.False(t, damaged(unit(true, true)))
	assert.False(t, damaged(unit(false, false)))
	assert.Equal(t, uint64(1), times.Lost())
	assert.True(t, damaged(unit(false, true)))
	for range maxDamaged - 1 {
		assert.True(t, damaged(unit(false, false)))
	}
	assert.False(t, damaged(unit(false, false)))
}

func TestHasImage(t *testing.T) {
	for text, want := range map[string]bool{
		"\x00\x00\x00\x01\x67\x42\x00\x00\x00\x01\x68\xce":                 false, // parameter sets
		"\x00\x00\x00\x01\x67\x42\x00\x00\x00\x01\x68\xce\x00\x00\x01\x65": true,
		"\x00\x00\x01\x41": true, "\x00\x00\x01": false, "": false, "\x65\x41": false,
	} {
		unit := Unit{Codec: H264, Data: []byte(text)}
		assert.Equal(t, want, unit.hasImage(), "%q", text)
	}
	for text, want := range map[string]bool{"\x00\x00\x01\x40\x01": false, "\x00\x00\x01\x26\x01": true, "\x00\x00\x01\x02\x01": true} {
		unit := Unit{Codec: H265, Data: []byte(text)}
		assert.Equal(t, want, unit.hasImage(), "%q", text)
	}
	assert.True(t, (&Unit{Codec: MJPEG, Data: []byte{1}}).hasImage())
	assert.False(t, (&Unit{Codec: MJPEG}).hasImage())
}

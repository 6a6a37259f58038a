package head

import (
	"slices"
	"testing"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
)

// FuzzTasks changes what the networks of tasks.json gave, numbers here and the shape of an output there: an error or sane detections with
// sane details, and nothing else.
func FuzzTasks(f *testing.F) {
	cases := readTasks(f)
	for i := range cases {
		f.Add(uint8(i), uint16(0), []byte{0, 0, 0, 0}, uint8(0), int16(1))
		f.Add(uint8(i), uint16(77), []byte{0, 0, 0xc0, 0x7f, 0xff, 0xff, 0xff, 0xff, 0, 0, 0x80, 0x7f}, uint8(1), int16(-1))
		f.Add(uint8(i), uint16(301), []byte{0, 0, 0xc0, 0x7f}, uint8(130), int16(7))
	}
	f.Fuzz(func(t *testing.T, number uint8, at uint16, bytes []byte, axis uint8, size int16) {
		c := &cases[int(number)%len(cases)]
		transform := engine.Transform{ScaleX: 0.5, ScaleY: 0.25, PadX: 3, PadY: -1}
		m, given := c.open(t, 64, transform)
		d, err := NewDecoder(m, Options{MultiLabel: at&1 != 0, MaxCandidates: 64, Limit: 32})
		if err != nil {
			t.Fatal(err)
		}
		for i := range given.Outputs {
			o := &given.Outputs[i]
			for from := int(at) % len(o.Data); len(bytes) > 0 && from < len(o.Data); from += 400 {
				copy(o.Data[from:], bytes)
			}
			if axis >= 128 && int(axis)%len(given.Outputs) == i {
				o.Shape = slices.Clone(o.Shape)
				o.Shape[int(axis/4)%len(o.Shape)] = int64(size)
			}
		}
		for img := range 2 {
			check(t, d, given, img)
			got, _, _ := d.Decode(given, img, 100, 80, nil)
			for i := range got {
				checkDetail(t, got[i].Detail)
			}
			_, _ = d.CountBadScores(given, img)
		}
	})
}

// checkDetail is of an image of 100x80.
func checkDetail(t *testing.T, d *postprocess.Detail) {
	t.Helper()
	if d == nil {
		t.Fatal("no details")
	}
	for _, k := range d.Keypoints {
		if !(k.X >= 0 && k.X <= 100 && k.Y >= 0 && k.Y <= 80 && k.Score >= 0 && k.Score <= 1) {
			t.Fatalf("keypoint %+v", k)
		}
	}
	if o := d.Oriented; o != nil && !(finite(o.X) && finite(o.Y) && finite(o.Width) && finite(o.Height) && finite(o.Angle)) {
		t.Fatalf("turned box %+v", *o)
	}
	if m := d.Mask; m != nil {
		sum := 0
		for _, n := range m.AppendRuns(nil, 100, 80) {
			sum += int(n)
		}
		if !m.Valid() || sum != 8000 {
			t.Fatalf("mask of %dx%d points and %d pixels", m.Width, m.Height, sum)
		}
	}
}

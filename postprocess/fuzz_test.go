package postprocess

import (
	"encoding/binary"
	"math"
	"testing"
)

// FuzzDecode feeds any shape and any bytes to every layout: an error or sane boxes, and nothing else.
func FuzzDecode(f *testing.F) {
	f.Add(uint8(0), int64(1), int64(6), int64(3), 0, false, make([]byte, 72))
	f.Add(uint8(1), int64(1), int64(3), int64(7), 2, true, []byte{0, 0, 0x80, 0x7f, 0, 0, 0x80, 0x3f})
	f.Add(uint8(2), int64(1), int64(2), int64(6), 1, false, []byte{0xff, 0xff, 0xff, 0xff})
	f.Add(uint8(3), int64(1), int64(4), int64(0), 0, true, []byte{0, 0, 0x20, 0x40})
	f.Add(uint8(4), int64(-1), int64(84), int64(8400), 80, false, []byte{})
	f.Fuzz(func(t *testing.T, layout uint8, batch, rows, columns int64, labels int, multi bool, raw []byte) {
		layouts := []Layout{LayoutAuto, LayoutYOLOv5, LayoutYOLOv8, LayoutEnd2End, LayoutClassify}
		shape := []int64{batch, rows, columns}
		if columns == 0 {
			shape = shape[:2]
		}
		d := &Decoder{Layout: layouts[int(layout)%len(layouts)], Labels: min(labels, 1<<16), MultiLabel: multi, MaxCandidates: 64, MaxDetections: 32}
		if rows > 1<<16 || columns > 1<<16 || d.Open(shape) != nil {
			return
		}
		// Repeat the bytes until the shape is full, when it is small enough to fill.
		count := len(raw) / 4
		if rows > 0 && columns >= 0 && rows*max(columns, 1) < 1<<16 && count > 0 {
			count = int(rows * max(columns, 1))
		}
		data := make([]float32, count)
		for i := range data {
			at := 4 * i % (len(raw) - 3)
			data[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[at:]))
		}
		transform := Transform{ScaleX: 0.5, ScaleY: 0.25, PadX: 3, PadY: -1}
		check := func(got []Detection, err error) {
			if err != nil && len(got) != 0 {
				t.Fatalf("%d detections with the error %v", len(got), err)
			}
			if d.Recognized() != LayoutClassify && len(got) > d.MaxDetections {
				t.Fatalf("%d detections", len(got))
			}
			for _, g := range got {
				if !(0 <= g.X1 && g.X1 < g.X2 && g.X2 <= 100 && 0 <= g.Y1 && g.Y1 < g.Y2 && g.Y2 <= 80 && g.Class >= 0 && g.Score >= 0 && g.Score <= maxScore) {
					t.Fatalf("bad detection %+v", g)
				}
			}
		}
		got, _, err := d.Decode(data, shape, transform, 100, 80, nil)
		check(got, err)
		got, _, err = d.DecodeCandidates(data[:len(data)/6*6], transform, 100, 80, nil)
		check(got, err)
		halves := make([]uint16, len(data))
		for i := range halves {
			halves[i] = uint16(math.Float32bits(data[i]))
		}
		got, _, err = d.DecodeHalf(halves, shape, transform, 100, 80, nil)
		check(got, err)
	})
}

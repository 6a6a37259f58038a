package head

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess/scan"
)

// layouts are all that can be asked for, recognition among them.
func layouts() []Layout {
	all := []Layout{LayoutAuto}
	for _, h := range All() {
		all = append(all, h.Layout)
	}
	return all
}

// FuzzRecognise feeds any outputs to recognition: an error in one line that is ErrLayout, or a head whose map lies within the outputs.
func FuzzRecognise(f *testing.F) {
	f.Add(uint16(640), uint16(640), uint16(80), uint8(0), uint8(0), []byte{0, 3, 1, 0, 84, 0, 0xd0, 0x20})
	f.Add(uint16(640), uint16(640), uint16(80), uint8(1), uint8(0), []byte{0, 3, 1, 0, 0x70, 0x62, 85, 0, 0, 4, 1, 0, 32, 0, 160, 0, 160, 0})
	f.Add(uint16(128), uint16(160), uint16(1), uint8(0), uint8(2), []byte{0, 3, 1, 0, 0x2c, 1, 6, 0})
	f.Add(uint16(224), uint16(224), uint16(0), uint8(2), uint8(4), []byte{1, 2, 0xff, 0xff, 0xe8, 3})
	tasks := []engine.Task{"", engine.Detect, engine.Classify, "segment", engine.Embed}
	f.Fuzz(func(t *testing.T, width, height, labels uint16, task, layout uint8, raw []byte) {
		m := &engine.Model{Width: int(width), Height: int(height)}
		m.Metadata = engine.Metadata{Task: tasks[int(task)%len(tasks)], EndToEnd: task&16 != 0, Stride: int(task & 96)}
		m.Metadata.Labels = make([]string, labels%4096)
		for len(raw) >= 2 && len(m.Outputs) < 6 {
			output := engine.TensorInfo{Name: "x", Type: engine.DataType(raw[0] % 7), Shape: []int64{}}
			rank := int(raw[1] % 6)
			for raw = raw[2:]; rank > 0 && len(raw) >= 2; rank, raw = rank-1, raw[2:] {
				output.Shape = append(output.Shape, int64(int16(binary.LittleEndian.Uint16(raw))))
			}
			m.Outputs = append(m.Outputs, output)
		}
		d, err := NewDecoder(m, Options{Layout: layouts()[int(layout)%len(layouts())]})
		if err != nil {
			if !errors.Is(err, ErrLayout) || strings.Contains(err.Error(), "\n") {
				t.Fatalf("%q", err)
			}
			return
		}
		r := d.Recognised()
		if r.Evidence == "" || r.Layout == LayoutAuto || d.settings.Layout != LayoutAuto && r.Layout != d.settings.Layout {
			t.Fatalf("%+v", r)
		}
		if filter := d.Filter(); filter != nil {
			if err := filter.Check(m.Outputs); err != nil {
				t.Fatalf("%+v of %v: %v", filter, m.Outputs, err)
			}
		}
	})
}

// FuzzDecode feeds any shape and any bytes to every head: an error or sane boxes, and nothing else.
func FuzzDecode(f *testing.F) {
	f.Add(uint8(0), int16(1), int16(6), int16(3), uint8(0), uint8(0), make([]byte, 72))
	f.Add(uint8(1), int16(1), int16(3), int16(7), uint8(2), uint8(1), []byte{0, 0, 0x80, 0x7f, 0, 0, 0x80, 0x3f})
	f.Add(uint8(2), int16(1), int16(84), int16(21), uint8(80), uint8(2), []byte{0xff, 0xff, 0xff, 0xff})
	f.Add(uint8(3), int16(1), int16(2), int16(6), uint8(1), uint8(3), []byte{0, 0, 0x20, 0x40})
	f.Add(uint8(4), int16(2), int16(4), int16(0), uint8(0), uint8(5), []byte{0, 0, 0x20, 0x40, 1, 2, 3, 0x3e})
	f.Add(uint8(0xd5), int16(1), int16(14), int16(6), uint8(0), uint8(0x1b), []byte("0000"))
	f.Add(uint8(0xb6), int16(1), int16(15), int16(3), uint8(0), uint8(0x1b), []byte("0001"))
	f.Fuzz(func(t *testing.T, layout uint8, batch, rows, columns int16, labels, flags uint8, raw []byte) {
		const most = 4096 // numbers, so that a run takes microseconds
		shape := []int64{int64(batch), int64(rows), int64(columns)}
		if columns == 0 {
			shape = shape[:2]
		}
		m := described(int(labels), shape)
		m.Width, m.Height = 64, 64
		half := flags&1 != 0
		if half {
			m.Outputs[0].Type = engine.Float16
		}
		o := Options{Layout: layouts()[int(layout)%len(layouts())], MultiLabel: flags&2 != 0, MaxCandidates: 64, Limit: 32}
		if flags&4 != 0 { // sizes that are open until there is a result
			m.Outputs[0].Shape = []int64{-1, -1, -1}[:len(shape)]
		}
		d, err := NewDecoder(m, o)
		if err != nil {
			return
		}
		count := len(raw) / 4
		if elements := max(shape[0], 1) * max(shape[1], 1) * max(int64(columns), 1); elements <= most && count > 0 {
			count = int(elements) // the bytes over and over
		}
		data := make([]float32, min(count, most))
		for i := range data {
			data[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i%(len(raw)-3):]))
		}
		transform := engine.Transform{ScaleX: 0.5, ScaleY: 0.25, PadX: 3, PadY: -1}
		output := whole(data, shape)
		if half {
			output.Type, output.Data = engine.Float16, unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(data))), 2*len(data))
		}
		given := result(transform, output)
		for number := range 2 {
			given.Transforms = append(given.Transforms, transform)
			check(t, d, given, number)
			if _, err := d.CountBadScores(given, number); err == nil && number > 0 && batch < 2 {
				t.Fatal("an image that is not there")
			}
		}
		check(t, d, listed(transform, data[:len(data)/6*6]), 0)
	})
}

// FuzzHeads changes what the networks of heads.json gave, a number here and the shape of an output there: an error or sane detections, and
// nothing else.
func FuzzHeads(f *testing.F) {
	for i := range readHeads(f) {
		f.Add(uint8(i), uint16(0), []byte{0, 0, 0, 0}, uint8(0), int16(1))
		f.Add(uint8(i), uint16(77), []byte{0, 0, 0xc0, 0x7f, 0xff, 0xff, 0xff, 0xff}, uint8(1), int16(-1))
	}
	cases := readHeads(f)
	f.Fuzz(func(t *testing.T, number uint8, at uint16, bytes []byte, axis uint8, size int16) {
		c := &cases[int(number)%len(cases)]
		transform := engine.Transform{ScaleX: 0.5, ScaleY: 0.25, PadX: 3, PadY: -1}
		m, given := c.open(t, 64, transform)
		d, err := NewDecoder(m, Options{Layout: c.Layout, MultiLabel: at&1 != 0})
		if err != nil {
			t.Fatal(err)
		}
		for i := range given.Outputs {
			o := &given.Outputs[i]
			o.Data = aligned(o.Data)
			if len(o.Data) > 0 {
				copy(o.Data[int(at)%len(o.Data):], bytes)
			}
			if int(axis)%len(given.Outputs) == i && axis >= 128 && len(o.Shape) > 0 {
				o.Shape = slices.Clone(o.Shape)
				o.Shape[int(axis/4)%len(o.Shape)] = int64(size)
			}
		}
		check(t, d, given, 0)
		_, _ = d.CountBadScores(given, 0)
	})
}

// aligned is a copy that may be read as numbers of any size.
func aligned(data []byte) []byte {
	numbers := make([]uint64, (len(data)+7)/8)
	bytes := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(numbers))), 8*len(numbers))
	copy(bytes, data)
	return bytes[:len(data):len(data)]
}

// check decodes an image of 100x80.
func check(t *testing.T, d *Decoder, given *engine.Result, number int) {
	got, stats, err := d.Decode(given, number, 100, 80, nil)
	if err != nil && len(got) != 0 {
		t.Fatalf("%d detections with the error %v", len(got), err)
	}
	layout := d.Recognised().Layout
	if layout != LayoutClassify && len(got) > d.settings.Limit {
		t.Fatalf("%d detections", len(got))
	}
	if err == nil && stats.Candidates != len(got)+stats.Suppressed+stats.Outside+stats.Truncated || stats.BadScores > stats.Invalid {
		t.Fatalf("%d detections of %+v", len(got), stats)
	}
	reads := layout == LayoutCTC || layout == LayoutCTCBlankLast // a character may be seen where the image was padded
	for _, g := range got {
		inside := 0 <= g.X1 && (g.X1 < g.X2 || reads && g.X1 == g.X2) && g.X2 <= 100 && 0 <= g.Y1 && g.Y1 < g.Y2 && g.Y2 <= 80
		if !(inside && g.Class >= 0 && g.Score >= 0 && g.Score <= scan.MaxScore) {
			t.Fatalf("bad finding %+v", g)
		}
	}
}

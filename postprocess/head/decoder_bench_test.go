package head

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/scan"
	"github.com/edge-infer/edge-infer/postprocess/scan/readfloor"
)

// BenchmarkDecode prints the decoder's time over the time of reading the same scores once in C ("x-floor") and the time of a strided Go
// decoder over ours ("x-strided"), the three interleaved.
func BenchmarkDecode(b *testing.B) {
	for _, hits := range []int{200, 3000} {
		b.Run(fmt.Sprintf("candidates=%d", hits), func(b *testing.B) {
			const boxes, classes = 8400, 80
			shape := []int64{1, 4 + classes, boxes}
			data := randomMap(rand.New(rand.NewPCG(9, 9)), boxes, classes, hits, 1<<20, 640)
			d, err := NewDecoder(described(classes, shape), Options{})
			if err != nil {
				b.Fatal(err)
			}
			dst := make([]postprocess.Detection, 0, 300)
			given := result(engine.Transform{ScaleX: 0.333, ScaleY: 0.333, PadY: 140}, whole(data, shape))
			decode := func() {
				if _, _, err := d.Decode(given, 0, 1920, 1080, dst[:0]); err != nil {
					b.Fatal(err)
				}
			}
			found := 0
			floor := func() { found += readfloor.Count(data[4*boxes:], d.settings.MinScore) }
			var list []scan.Candidate
			strided := func() { list = reference(&d.settings, data, boxes, classes, list[:0]) }
			decode()
			var ours, floors, stridden []float64
			for range 25 {
				floors = append(floors, timed(floor, 40))
				ours = append(ours, timed(decode, 40))
				stridden = append(stridden, timed(strided, 4))
				ours = append(ours, timed(decode, 40))
				floors = append(floors, timed(floor, 40))
			}
			if found == 0 {
				b.Fatal("the floor found nothing")
			}
			for b.Loop() {
				decode()
			}
			b.ReportMetric(median(ours)/median(floors), "x-floor")
			b.ReportMetric(median(stridden)/median(ours), "x-strided")
			b.ReportMetric(median(floors), "floor-us")
			b.ReportMetric(median(ours), "us")
		})
	}
}

// overFloor prints the time of decode over that of floor, which take turns of so many calls, and runs decode for the benchmark's own time.
func overFloor(b *testing.B, decode, floor func(), calls int) {
	b.Helper()
	var ours, floors []float64
	for range 25 {
		floors = append(floors, timed(floor, calls))
		ours = append(ours, timed(decode, calls), timed(decode, calls))
		floors = append(floors, timed(floor, calls))
	}
	for b.Loop() {
		decode()
	}
	b.ReportMetric(median(ours)/median(floors), "x-floor")
	b.ReportMetric(median(floors), "floor-us")
	b.ReportMetric(median(ours), "us")
}

// timed is the mean time of one call in microseconds.
func timed(call func(), rounds int) float64 {
	start := time.Now()
	for range rounds {
		call()
	}
	return float64(time.Since(start).Nanoseconds()) / 1e3 / float64(rounds)
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

// BenchmarkLayouts times the other ways into the decoder: binary16 numbers, the YOLOv5 map of the same image size, and the short list of a
// device filter.
func BenchmarkLayouts(b *testing.B) {
	const boxes, classes = 8400, 80
	random := rand.New(rand.NewPCG(9, 9))
	data := randomMap(random, boxes, classes, 200, 1<<20, 640)
	shape := []int64{1, 4 + classes, boxes}
	dst := make([]postprocess.Detection, 0, 300)
	open := func(b *testing.B, shape []int64) *Decoder {
		d, err := NewDecoder(described(classes, shape), Options{})
		if err != nil {
			b.Fatal(err)
		}
		return d
	}
	decode := func(b *testing.B, d *Decoder, given *engine.Result) {
		for b.Loop() {
			if _, _, err := d.Decode(given, 0, 640, 640, dst[:0]); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.Run("half", func(b *testing.B) {
		numbers := make([]uint16, len(data))
		for i, v := range data {
			numbers[i] = uint16(max(0, min(v, 1)) * 0x3c00)
		}
		decode(b, open(b, shape), result(identity, halves(numbers, shape)))
	})
	b.Run("yolov5", func(b *testing.B) {
		rows := make([]float32, 3*boxes*(5+classes))
		for i := range 3 * boxes {
			row := rows[i*(5+classes):]
			copy(row, []float32{random.Float32() * 640, random.Float32() * 640, 40, 40, random.Float32() * 0.2, 0.9})
			if i%126 == 0 {
				row[4] = 0.3 + random.Float32()*0.6
			}
		}
		v5 := []int64{1, 3 * boxes, 5 + classes}
		decode(b, open(b, v5), result(identity, whole(rows, v5)))
	})
	b.Run("candidates=200", func(b *testing.B) {
		d := open(b, shape)
		if _, _, err := d.Decode(result(identity, whole(data, shape)), 0, 640, 640, dst[:0]); err != nil {
			b.Fatal(err)
		}
		var rows []float32
		for _, c := range d.decoder.(*denseDecoder).candidates {
			rows = append(rows, c.X1, c.Y1, c.X2, c.Y2, c.Score, float32(c.Class))
		}
		decode(b, d, listed(identity, rows))
	})
}

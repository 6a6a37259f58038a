package postprocess

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/edge-infer/edge-infer/postprocess/internal/readfloor"
)

// BenchmarkDecode prints the decoder's time over the time of reading the same scores once in C ("x-floor") and the time of a strided Go
// decoder over ours ("x-strided"), the three interleaved.
func BenchmarkDecode(b *testing.B) {
	for _, hits := range []int{200, 3000} {
		b.Run(fmt.Sprintf("candidates=%d", hits), func(b *testing.B) {
			const boxes, classes = 8400, 80
			shape := []int64{1, 4 + classes, boxes}
			data := randomMap(rand.New(rand.NewPCG(9, 9)), boxes, classes, hits, 1<<20, 640)
			d := &Decoder{Labels: classes}
			if err := d.Open(shape); err != nil {
				b.Fatal(err)
			}
			dst := make([]Detection, 0, 300)
			decode := func() {
				if _, _, err := d.Decode(data, shape, Transform{0.333, 0.333, 0, 140}, 1920, 1080, dst[:0]); err != nil {
					b.Fatal(err)
				}
			}
			found := 0
			floor := func() { found += readfloor.Count(data[4*boxes:], d.Confidence) }
			var list []candidate
			strided := func() { list = reference(d, data, boxes, classes, list[:0]) }
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

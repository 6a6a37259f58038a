package head

import (
	"math/rand/v2"
	"testing"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess/scan/readfloor"
)

// BenchmarkMaps prints the time of decoding a map over the time of reading what the network gave once in C ("x-floor").
func BenchmarkMaps(b *testing.B) {
	for _, c := range []struct {
		name         string
		task         engine.Task
		planes, side int64
	}{
		{"deeplab", engine.Semantic, 21, 520},
		{"segformer", engine.Semantic, 150, 128},
		{"cityscapes", engine.Semantic, 19, 640},
		{"depth", engine.Depth, 1, 518},
	} {
		b.Run(c.name, func(b *testing.B) {
			random := rand.New(rand.NewPCG(7, 7))
			data := make([]float32, c.planes*c.side*c.side)
			for i := range data {
				data[i] = random.Float32()*20 - 10
			}
			output := whole(data, []int64{1, c.planes, c.side, c.side})
			m := described(0, output.Shape)
			m.Metadata.Task, m.Width, m.Height = c.task, int(c.side), int(c.side)
			d, err := NewDecoder(m, Options{})
			if err != nil {
				b.Fatal(err)
			}
			scale := float32(c.side) / 1000
			given := result(engine.Transform{ScaleX: scale, ScaleY: scale}, output)
			decode := func() {
				if _, _, err := d.Decode(given, 0, 1000, 1000, nil); err != nil || d.Map(0) == nil {
					b.Fatal(err)
				}
			}
			read := 0
			floor := func() { read += readfloor.Count(data, 3) }
			decode()
			overFloor(b, decode, floor, 4)
		})
	}
}

package head

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/scan/readfloor"
)

// BenchmarkTasks prints the time of decoding 20 objects over the time of reading what the network gave once in C ("x-floor"), prototypes
// included, and what each object's masks, points or angle come to.
func BenchmarkTasks(b *testing.B) {
	const boxes, objects, grid = 8400, 20, 160
	for _, c := range []struct {
		task           engine.Task
		classes, extra int
	}{{engine.Pose, 1, 51}, {engine.Segment, 80, 32}, {engine.OBB, 15, 1}} {
		b.Run(fmt.Sprint(c.task), func(b *testing.B) {
			random := rand.New(rand.NewPCG(7, 7))
			rows := 4 + c.classes + c.extra
			data := make([]float32, rows*boxes)
			for i := range data {
				data[i] = random.Float32() * 0.2
			}
			for i := range objects {
				at := i * boxes / objects
				for row, v := range []float32{float32(60 + 125*(i%5)), float32(70 + 150*(i/5)), 90, 120} {
					data[row*boxes+at] = v
				}
				data[(4+i%c.classes)*boxes+at] = 0.8
			}
			shape := []int64{1, int64(rows), boxes}
			m := described(c.classes, shape)
			m.Metadata.Task, m.Metadata.Keypoints, m.Metadata.KeypointNumbers = c.task, 17, 3
			outputs := []engine.Tensor{whole(data, shape)}
			var prototypes []float32
			if c.task == engine.Segment {
				prototypes = make([]float32, c.extra*grid*grid)
				for i := range prototypes {
					prototypes[i] = random.Float32() - 0.5
				}
				outputs = append(outputs, whole(prototypes, []int64{1, int64(c.extra), grid, grid}))
				m.Outputs = append(m.Outputs, engine.TensorInfo{Name: "output1", Shape: outputs[1].Shape})
			}
			d, err := NewDecoder(m, Options{})
			if err != nil {
				b.Fatal(err)
			}
			given := result(engine.Transform{ScaleX: 0.333, ScaleY: 0.333, PadY: 140}, outputs...)
			dst := make([]postprocess.Detection, 0, 300)
			decode := func() {
				found, _, err := d.Decode(given, 0, 1920, 1080, dst[:0])
				if err != nil || len(found) < objects/2 {
					b.Fatal(len(found), err)
				}
			}
			read := 0
			floor := func() {
				read += readfloor.Count(data, d.settings.MinScore) + readfloor.Count(prototypes, d.settings.MinScore)
			}
			decode()
			overFloor(b, decode, floor, 20)
		})
	}
}

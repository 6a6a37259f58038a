package head

import (
	"math/rand/v2"
	"sort"

	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/scan"
)

// reference is the decoder as one would write it first: a strided look at every box, a sort, and every pair compared.
func reference(s *settings, data []float32, boxes, classes int, dst []scan.Candidate) []scan.Candidate {
	var list []scan.Candidate
	for i := range boxes {
		best, score := 0, data[4*boxes+i]
		for c := 1; c < classes; c++ {
			if other := data[(4+c)*boxes+i]; other > score {
				best, score = c, other
			}
		}
		if score < s.minScore(best) {
			continue
		}
		x, y, w, h := data[i], data[boxes+i], data[2*boxes+i], data[3*boxes+i]
		list = append(list, scan.Candidate{
			Box: postprocess.Box{X1: x - w/2, Y1: y - h/2, X2: x + w/2, Y2: y + h/2}, Score: score, Class: int32(best), Index: int32(i),
		})
	}
	sort.SliceStable(list, func(a, b int) bool {
		if list[a].Score != list[b].Score {
			return list[a].Score > list[b].Score
		}
		return comparePlace(&list[a], &list[b]) < 0
	})
	gone := make([]bool, len(list))
	for i := range list {
		if gone[i] {
			continue
		}
		dst = append(dst, list[i])
		for j := i + 1; j < len(list); j++ {
			if (s.Agnostic || list[i].Class == list[j].Class) && list[i].IoU(list[j].Box) > s.IoU {
				gone[j] = true
			}
		}
	}
	return dst
}

// randomMap fills a yolov8 map whose boxes over the threshold lie in clusters; about hits of them. Scores come in that many steps: few give
// ties, as quantized networks do.
func randomMap(random *rand.Rand, boxes, classes, hits, steps int, size float32) []float32 {
	data := make([]float32, (4+classes)*boxes)
	for i := range data[4*boxes:] {
		data[4*boxes+i] = random.Float32() * 0.2
	}
	for i := range boxes {
		data[i], data[boxes+i] = random.Float32()*size, random.Float32()*size
		data[2*boxes+i], data[3*boxes+i] = 1+random.Float32()*size/4, 1+random.Float32()*size/4
	}
	const clusterSize = 10
	for i := 0; i < hits; i++ {
		at := random.IntN(boxes)
		if i%clusterSize != 0 && at > 0 {
			previous := at - 1
			for _, row := range []int{0, 1, 2, 3} {
				data[row*boxes+at] = data[row*boxes+previous] * (0.97 + 0.06*random.Float32())
			}
		}
		data[(4+random.IntN(classes))*boxes+at] = 0.25 + 0.7*float32(random.IntN(steps))/float32(steps)
	}
	return data
}

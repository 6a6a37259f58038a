package head

import (
	"github.com/edge-infer/edge-infer/engine"
)

// LayoutYOLONAS is [B,N,4] and [B,N,nc]: for each cell the corners x1, y1, x2, y2 in input pixels, and the scores of the classes, after
// their sigmoid. It is what SuperGradients exports without its own suppression.
const LayoutYOLONAS Layout = "yolo-nas"

type yoloNAS struct{ labelsAsScored }

func (yoloNAS) describe() Description {
	return Description{
		Layout: LayoutYOLONAS, Task: engine.Detect, Form: "[B,N,4] with [B,N,nc] and a box for each cell",
		Networks: "YOLO-NAS, PP-YOLOE of SuperGradients",
		Gives:    boxesWithClasses, Preset: "yolo-nas",
	}
}

func (yoloNAS) reads(n *network) [][]int { return n.pairs() }

func (h yoloNAS) measure(shapes [][]int64) (Sizes, error) { return measurePair(h, shapes) }

func (yoloNAS) weigh(n *network, f *Match) (evidence, doubt string) {
	return n.weighDense(f, 1, false, func([]int64) bool { return true })
}

func (yoloNAS) boxMap(f *Match) (engine.BoxMap, bool) {
	m, ok := pairMap(f)
	m.Corners = true
	return m, ok
}

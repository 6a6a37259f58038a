package head

import "github.com/edge-infer/edge-infer/engine"

// LayoutYOLONAS is [B,N,4] and [B,N,nc]: for each cell the corners x1, y1, x2, y2 in input pixels, and the scores of the classes, after
// their sigmoid. SuperGradients exports it without its own suppression.
const LayoutYOLONAS Layout = "yolo-nas"

type yoloNAS struct{ scoredLabels }

func (yoloNAS) describe() Description {
	return Description{
		Layout: LayoutYOLONAS, Task: engine.Detect, Form: "[B,N,4] with [B,N,nc] and a box for each cell",
		Networks: "YOLO-NAS, PP-YOLOE of SuperGradients",
		Gives:    boxesWithClasses, Preset: "yolo-nas",
	}
}

func (yoloNAS) findOutputs(n *network) [][]int { return n.pairs() }

func (h yoloNAS) measure(shapes [][]int64) (sizes, error) { return measurePair(h, shapes) }

func (yoloNAS) recognise(n *network, m *match) (evidence, doubt string) {
	return n.recogniseDense(m, 1, false, func(int) (bool, string) { return true, "" })
}

func (yoloNAS) boxMap(m *match) (engine.BoxMap, bool) {
	b, ok := pairMap(m)
	b.Corners = true
	return b, ok
}

func (yoloNAS) newDecoder(s *settings) decoder { return newDenseDecoder(s) }

package head

import "github.com/edge-infer/edge-infer/engine"

// LayoutYOLOv6 is LayoutYOLOv5 with one box in each cell and an objectness that is always 1, as the exports of meituan/YOLOv6 have it.
// YOLOX with --decode_in_inference has the same form and another preprocessing: the output's name distinguishes them.
const LayoutYOLOv6 Layout = "yolov6"

type yolov6 struct{ yolov5 }

func (yolov6) describe() Description {
	return Description{
		Layout: LayoutYOLOv6, Task: engine.Detect, Form: "[B,N,5+nc] with a box for each cell", Networks: "YOLOv6", Gives: boxesWithClasses,
		Preset: "ultralytics",
	}
}

func (yolov6) recognise(n *network, m *match) (evidence, doubt string) {
	if !n.namedAsYOLOv6(m) || n.endsInClass(m) {
		return "", ""
	}
	return n.recogniseCells(m, false)
}

// namedAsYOLOv6 reports whether the output has the name of YOLOv6 exports, which YOLOX does not use.
func (n *network) namedAsYOLOv6(m *match) bool {
	return hasName(n.outputs[m.outputs[0]].Name, "outputs")
}

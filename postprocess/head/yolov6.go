package head

import "github.com/edge-infer/edge-infer/engine"

// LayoutYOLOv6 is LayoutYOLOv5 with one box in each cell and an objectness that is always 1, as the exports of meituan/YOLOv6 have it.
// YOLOX that decodes has the same form and takes other images: the output's name tells them apart.
const LayoutYOLOv6 Layout = "yolov6"

type yolov6 struct{ yolov5 }

func (yolov6) describe() Description {
	return Description{
		Layout: LayoutYOLOv6, Task: engine.Detect, Form: "[B,N,5+nc] with a box for each cell", Networks: "YOLOv6", Gives: boxesWithClasses,
		Preset: "ultralytics",
	}
}

func (yolov6) weigh(n *network, f *Match) (evidence, doubt string) {
	if !n.namedAsYOLOv6(f) {
		return "", ""
	}
	return n.weighCells(f, false)
}

// namedAsYOLOv6 reports whether the output has the name that YOLOv6 gives it; YOLOX calls its own output.
func (n *network) namedAsYOLOv6(f *Match) bool {
	return called(n.outputs[f.Outputs[0]].Name, "outputs")
}

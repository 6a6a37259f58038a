package postprocess

import (
	"fmt"
	"math"
	"strings"
)

// Layout names the meaning of an output tensor.
type Layout string

// The layouts that are decoded; B is the batch, N the number of boxes, nc the number of classes.
const (
	// LayoutAuto recognizes the layout from the shape and the metadata.
	LayoutAuto Layout = ""
	// LayoutYOLOv5 is [B,N,5+nc]: a row per box with centre, size, objectness and class scores.
	LayoutYOLOv5 Layout = "yolov5"
	// LayoutYOLOv8 is [B,4+nc,N], the head of YOLOv8, v9 and 11: a column per box with centre, size and class scores.
	LayoutYOLOv8 Layout = "yolov8"
	// LayoutEnd2End is [B,N,6], the head of YOLOv10 and YOLO26: corners, score and class per row, no suppression needed.
	LayoutEnd2End Layout = "end2end"
	// LayoutClassify is [B,nc]: one score per class.
	LayoutClassify Layout = "classify"
)

const supportedLayouts = "yolov5 [B,N,5+nc], yolov8 [B,4+nc,N], end2end [B,N,6] and classify [B,nc]"

// maxEnd2EndRows separates the short lists of end-to-end heads from the dense maps of YOLOv5 with one class. Exports write 300 rows.
const maxEnd2EndRows = 1000

// ParseLayout reads a layout's name as a user gives it; "auto" and "" ask for recognition.
func ParseLayout(name string) (Layout, error) {
	switch layout := Layout(strings.ToLower(name)); layout {
	case LayoutAuto, LayoutYOLOv5, LayoutYOLOv8, LayoutEnd2End, LayoutClassify:
		return layout, nil
	case "auto":
		return LayoutAuto, nil
	}
	return LayoutAuto, fmt.Errorf("layout %q is not known (auto, yolov5, yolov8, end2end or classify)", name)
}

// head is a layout with the sizes that one model gives it. A dimension that the model leaves open is -1.
type head struct {
	layout  Layout
	boxes   int64
	classes int // 0 when neither the shape nor the metadata says
}

// anchors is how many boxes a YOLO head with strides 8, 16 and 32 has for an input size: 1 box a cell since YOLOv8, 3 before.
func anchors(width, height, perCell int) int64 {
	cells := 0
	for _, stride := range [...]int{8, 16, 32} {
		cells += (width / stride) * (height / stride)
	}
	return int64(cells * perCell)
}

// named gives the head of a shape whose layout the user or the metadata has named.
func named(layout Layout, shape []int64, labels int) (head, error) {
	refuse := func(want string) (head, error) {
		return head{}, fmt.Errorf("output %v is not %s, which needs %s", shape, layout, want)
	}
	h := head{layout: layout, boxes: -1, classes: labels}
	classDimension, offset := int64(-1), int64(0)
	switch layout {
	case LayoutYOLOv5:
		if len(shape) != 3 || (shape[2] < 6 && shape[2] != -1) {
			return refuse("[B,N,5+nc]")
		}
		h.boxes, classDimension, offset = shape[1], shape[2], 5
	case LayoutYOLOv8:
		if len(shape) != 3 || (shape[1] < 5 && shape[1] != -1) {
			return refuse("[B,4+nc,N]")
		}
		h.boxes, classDimension, offset = shape[2], shape[1], 4
	case LayoutEnd2End:
		if len(shape) != 3 || (shape[2] != 6 && shape[2] != -1) {
			return refuse("[B,N,6]")
		}
		h.boxes = shape[1]
		return h, nil
	case LayoutClassify:
		if len(shape) != 2 || (shape[1] < 1 && shape[1] != -1) {
			return refuse("[B,nc]")
		}
		classDimension = shape[1]
	}
	if h.boxes == 0 || h.boxes > math.MaxInt32 || classDimension > math.MaxInt32 {
		return head{}, fmt.Errorf("output %v has a size that cannot be decoded", shape)
	}
	if classDimension == -1 {
		return h, nil
	}
	h.classes = int(classDimension - offset)
	if labels != 0 && labels != h.classes {
		return head{}, fmt.Errorf("output %v read as %s has %d classes but the model names %d labels: give the labels that belong to the model, or another layout",
			shape, layout, h.classes, labels)
	}
	return h, nil
}

// recognize finds the layout of a shape. labels, width and height are 0 when they are not known; task is "" then.
func recognize(shape []int64, task string, labels, width, height int) (head, error) {
	switch task {
	case "classify":
		return named(LayoutClassify, shape, labels)
	case "", "detect":
	default:
		return head{}, fmt.Errorf("task %q is not decoded (detect or classify)", task)
	}
	switch {
	case len(shape) == 2 && task == "":
		return named(LayoutClassify, shape, labels)
	case len(shape) != 3:
		return head{}, fmt.Errorf("output %v has no known layout; supported are %s", shape, supportedLayouts)
	}
	rows, columns := shape[1], shape[2]
	v5 := columns >= 6 && rows != 0 && (labels == 0 || columns == int64(5+labels))
	v8 := rows >= 5 && columns != 0 && (labels == 0 || rows == int64(4+labels))
	if columns == 6 && rows <= maxEnd2EndRows {
		// One class makes a YOLOv5 row six numbers long as well; only the number of boxes tells them apart.
		if v5 && (rows == anchors(width, height, 3) || (rows == -1 && labels == 1)) {
			return head{}, fmt.Errorf("output %v could be end2end, or yolov5 with 1 class: name the layout end2end or yolov5", shape)
		}
		return named(LayoutEnd2End, shape, labels)
	}
	if v5 && v8 {
		is5, is8 := rows == anchors(width, height, 3), columns == anchors(width, height, 1)
		if is5 == is8 {
			return head{}, fmt.Errorf("output %v could be yolov5 with %d classes or yolov8 with %d: name the layout yolov5 or yolov8, or give the model's labels",
				shape, columns-5, rows-4)
		}
		v5, v8 = is5, is8
	}
	switch {
	case v5:
		return named(LayoutYOLOv5, shape, labels)
	case v8:
		return named(LayoutYOLOv8, shape, labels)
	case labels != 0 && columns >= 6 && rows == anchors(width, height, 3):
		return named(LayoutYOLOv5, shape, labels)
	case labels != 0 && rows >= 5 && columns == anchors(width, height, 1):
		return named(LayoutYOLOv8, shape, labels)
	}
	return head{}, fmt.Errorf("output %v has no known layout for %d labels; supported are %s", shape, labels, supportedLayouts)
}

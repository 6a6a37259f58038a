package tensorrt

import "github.com/edge-infer/edge-infer/engine"

// layout is a YOLO head that the device filter reads: anchors boxes of centre, size, maybe objectness, and classes scores.
type layout struct {
	anchors, classes int
	objectness       bool
	// Elements from box to box and from field to field.
	anchorStride, fieldStride int
	half                      bool
}

// findLayout recognizes the heads of YOLOv5 (rows with objectness) and of YOLOv8, v9 and 11 (columns without), by the number of boxes that
// such a head has for the input's size and, where they are known, by the number of labels. Anything else is left to the host.
func findLayout(m *engine.Model) *layout {
	if m.Metadata.Task != "" && m.Metadata.Task != engine.Detect || len(m.Outputs) != 1 || len(m.Outputs[0].Shape) != 3 {
		return nil
	}
	out := m.Outputs[0]
	if out.Type != engine.Float32 && out.Type != engine.Float16 {
		return nil
	}
	cells := 0
	for _, stride := range []int{8, 16, 32} {
		cells += (m.Width / stride) * (m.Height / stride)
	}
	rows, columns := int(out.Shape[1]), int(out.Shape[2])
	l := &layout{half: out.Type == engine.Float16}
	switch {
	case columns == cells && rows > 4:
		l.anchors, l.classes, l.anchorStride, l.fieldStride = columns, rows-4, 1, columns
	case rows == 3*cells && columns > 5:
		l.anchors, l.classes, l.anchorStride, l.fieldStride, l.objectness = rows, columns-5, columns, 1, true
	default:
		return nil
	}
	if labels := len(m.Metadata.Labels); labels > 0 && labels != l.classes {
		return nil
	}
	return l
}

// fields of one box.
func (l *layout) fields() int {
	if l.objectness {
		return 5 + l.classes
	}
	return 4 + l.classes
}

package head

import (
	"image"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/scan"
)

// LayoutRFDETRSegment is LayoutRFDETR with [B,Q,h,w]: the mask of each query as log odds on a grid over the whole image. It is not cut to
// the box.
const LayoutRFDETRSegment Layout = "rfdetr-segment"

type rfdetrSegment struct{ rfdetr }

func (rfdetrSegment) describe() Description {
	return Description{
		Layout: LayoutRFDETRSegment, Task: engine.Segment, Form: "[B,Q,4] with [B,Q,1+nc] before sigmoid and [B,Q,h,w]",
		Networks: "segmentation of RF-DETR", Gives: boxesWithMasks, Preset: "rfdetr", NMSFree: true, ScanFormat: scan.Format{Logits: true},
	}
}

func (rfdetrSegment) findOutputs(n *network) [][]int {
	if all := n.named([]string{"dets"}, []string{"labels"}, []string{"masks"}); all != nil {
		return [][]int{all}
	}
	return nil
}

// maxMaskPoints bounds the grid of one mask.
const maxMaskPoints = 1 << 22

func (h rfdetrSegment) measure(shapes [][]int64) (sizes, error) {
	s, err := measurePair(h, shapes)
	masks := shapes[2]
	if err != nil || len(masks) != 4 || masks[1] != s.boxes || masks[2] < 1 || masks[3] < 1 || masks[2]*masks[3] > maxMaskPoints {
		return sizes{}, mismatch(h, shapes)
	}
	s.extra = int(masks[2] * masks[3])
	return s, nil
}

func (rfdetrSegment) recognise(n *network, m *match) (evidence, doubt string) {
	return recogniseQueries(n, m, "boxes and masks")
}

func (rfdetrSegment) extra(m *match) engine.Numbers {
	return engine.Numbers{Output: m.outputs[2], Step: int64(m.sizes.extra), Next: 1}
}

func (h rfdetrSegment) newDecoder(s *settings) decoder {
	return &rfdetrSegmentDecoder{boxes: newBoxes(s), head: h}
}

type rfdetrSegmentDecoder struct {
	boxes
	masks
	head    rfdetrSegment
	columns []int32 // scratch of one mask
}

func (d *rfdetrSegmentDecoder) decode(in *input, dst []postprocess.Detection) ([]postprocess.Detection, error) {
	if err := d.scan(in); err != nil {
		return dst, err
	}
	first := len(dst)
	dst = d.finish(in, dst)
	if !in.scoresOnly {
		d.addMasks(in, dst[first:])
	}
	return dst, nil
}

// addMasks gives every detection the mask of its query: the part of the grid that contains the object and the points around it, so that
// interpolation ends it where it ends on the whole grid.
func (d *rfdetrSegmentDecoder) addMasks(in *input, found []postprocess.Detection) {
	shape, from := in.shapes[2], in.extra(d.head.extra(&in.match))
	size := image.Pt(int(shape[3]), int(shape[2]))
	columns := resize(&d.columns, size.X)
	all, logits := d.masks.begin(in, found, func(i int) postprocess.Mask {
		return maskAround(in, scan.PositiveBounds(from.all(d.origins[i], in.match.extra), size, columns), size)
	})
	for i := range all {
		m, grid := &all[i], from.all(d.origins[i], in.match.extra)
		count := m.Width * m.Height
		m.Logits, logits = logits[:count:count], logits[count:]
		column, row := int(m.X), int(m.Y)
		for y := range m.Height {
			copy(m.Logits[y*m.Width:(y+1)*m.Width], grid[(row+y)*size.X+column:])
		}
		m.X, m.Y = in.gridOffset(size, column, row)
	}
}

// maskAround returns the mask, without its logits, of an object in that part of a grid; X and Y are its first point on the grid. The mask
// of an empty part has no pixel.
func maskAround(in *input, object image.Rectangle, size image.Point) postprocess.Mask {
	m := postprocess.Mask{Width: 1, Height: 1}
	m.StepX, m.StepY = in.gridStep(size)
	if object.Empty() {
		return m
	}
	part := object.Inset(-1).Intersect(image.Rectangle{Max: size})
	m.X, m.Y = float32(part.Min.X), float32(part.Min.Y)
	m.Width, m.Height = part.Dx(), part.Dy()
	x, y := in.gridOffset(size, 0, 0)
	m.Bounds.Min.X, m.Bounds.Max.X = pixelSpan(x, m.StepX, part.Min.X, part.Max.X, size.X, in.width)
	m.Bounds.Min.Y, m.Bounds.Max.Y = pixelSpan(y, m.StepY, part.Min.Y, part.Max.Y, size.Y, in.height)
	return m
}

// pixelSpan returns the range of pixels on an axis that the grid points from..to describe: those between two of the points, and those
// outside the grid if the range reaches its border. It is the inverse of gridSpan.
func pixelSpan(start, step float32, from, to, points, pixels int) (first, end int) {
	end = pixels
	if from > 0 {
		first = int(min(max((float32(from)-start)/step, 0), float32(pixels)))
	}
	if to < points {
		end = ceil(min(max((float32(to-1)-start)/step+1, 0), float32(pixels)))
	}
	return first, max(first, end)
}

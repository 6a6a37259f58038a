package report

import (
	"encoding/base64"
	"encoding/binary"
	"slices"

	"github.com/edge-infer/edge-infer/engine/onnx"
	"github.com/edge-infer/edge-infer/mqtt/payload"
	"github.com/edge-infer/edge-infer/postprocess"
)

// MaskForm is the encoding of masks in messages.
type MaskForm string

// The forms: simplified polygons, COCO's compressed run-length encoding, or none.
const (
	MaskPolygon MaskForm = "polygon"
	MaskRLE     MaskForm = "rle"
	MaskOff     MaskForm = "off"
)

// maxRunLengthBytes bounds the run-length encoding of one mask in a message. Longer ones are smoothed until they fit, which removes details
// of a few pixels.
const maxRunLengthBytes = 4096

// Details converts detections to payloads. It reuses its buffers from frame to frame and must be used by one goroutine at a time.
type Details struct {
	Masks MaskForm // empty for polygons
	// Exact keeps every pixel of run-length encodings, of any length: for documents that no broker carries.
	Exact bool

	keypoints  [][3]float64
	corners    [][2]float64
	counts     []byte
	polygons   [][][2]float64
	points     [][2]float64
	attributes []payload.Attribute
	halves     []byte
	encoded    []byte // embeddings
	runs       postprocess.Runs
	tracer     postprocess.Tracer
}

// Begin starts a new frame and invalidates the results for the last one.
func (d *Details) Begin() {
	d.keypoints, d.corners, d.counts = d.keypoints[:0], d.corners[:0], d.counts[:0]
	d.polygons, d.points, d.attributes = d.polygons[:0], d.points[:0], d.attributes[:0]
	d.encoded = d.encoded[:0]
}

// Attributes converts attributes; the result is valid until Begin.
func (d *Details) Attributes(all []postprocess.Attribute) []payload.Attribute {
	first := len(d.attributes)
	for i := range all {
		d.attributes = append(d.attributes, payload.Attribute{Name: all[i].Name, Value: all[i].Value, Score: float64(all[i].Score)})
	}
	return slices.Clip(d.attributes[first:])
}

// Embedding encodes a vector as base64 of little-endian FP16, valid until Begin; nil for an empty vector.
func (d *Details) Embedding(vector []float32) []byte {
	if len(vector) == 0 {
		return nil
	}
	d.halves = d.halves[:0]
	for _, v := range vector {
		d.halves = binary.LittleEndian.AppendUint16(d.halves, onnx.ToHalf(v))
	}
	first := len(d.encoded)
	d.encoded = base64.StdEncoding.AppendEncode(d.encoded, d.halves)
	return slices.Clip(d.encoded[first:])
}

// Detection converts a detection on an image of this size; the result is valid until Begin.
func (d *Details) Detection(f *postprocess.Detection, labels []string, width, height int) payload.Detection {
	return payload.Detection{
		Label: postprocess.Label(labels, f.Class), Class: f.Class, Score: float64(f.Score), Box: Corners(f.Box), Detail: d.Of(f, width, height),
	}
}

// Corners returns x1, y1, x2, y2 of a box.
func Corners(b postprocess.Box) [4]float64 {
	return [4]float64{float64(b.X1), float64(b.Y1), float64(b.X2), float64(b.Y2)}
}

// Of converts the mask, keypoints, angle and attributes of a detection on an image of this size; the result is valid until Begin.
func (d *Details) Of(f *postprocess.Detection, width, height int) (to payload.Detail) {
	from := f.Detail
	if from == nil {
		return to
	}
	to.Attributes, to.Embedding = d.Attributes(from.Attributes), d.Embedding(from.Embedding)
	first := len(d.keypoints)
	for _, k := range from.Keypoints {
		d.keypoints = append(d.keypoints, [3]float64{float64(k.X), float64(k.Y), float64(k.Score)})
	}
	to.Keypoints = slices.Clip(d.keypoints[first:])
	if from.Skeleton != nil && len(from.Skeleton.Names) == len(to.Keypoints) {
		to.Names = from.Skeleton.Names
	}
	if from.Oriented != nil {
		first = len(d.corners)
		for _, c := range from.Oriented.Corners() {
			d.corners = append(d.corners, [2]float64{float64(c.X), float64(c.Y)})
		}
		to.Corners, to.Angle = slices.Clip(d.corners[first:]), float64(from.Oriented.Angle)
	}
	switch {
	case from.Mask == nil || d.Masks == MaskOff:
	case d.Masks == MaskRLE:
		first = len(d.counts)
		d.runLengths(from.Mask, width, height)
		to.Mask = payload.Mask{Counts: slices.Clip(d.counts[first:]), Width: width, Height: height}
	default:
		to.Mask.Polygons = d.outlines(from.Mask)
	}
	return to
}

// runLengths appends the run-length encoding of the mask to d.counts.
func (d *Details) runLengths(m *postprocess.Mask, width, height int) {
	first := len(d.counts)
	d.runs = m.AppendRuns(d.runs[:0], width, height)
	d.counts = d.runs.AppendCounts(d.counts)
	for least := uint32(2); !d.Exact && len(d.counts)-first > maxRunLengthBytes; least *= 2 {
		d.runs = d.runs.Smooth(least)
		d.counts = d.runs.AppendCounts(d.counts[:first])
	}
}

func (d *Details) outlines(m *postprocess.Mask) [][][2]float64 {
	first := len(d.polygons)
	for _, line := range d.tracer.Outlines(m) {
		start := len(d.points)
		for _, p := range line {
			d.points = append(d.points, [2]float64{float64(p.X), float64(p.Y)})
		}
		d.polygons = append(d.polygons, slices.Clip(d.points[start:]))
	}
	return slices.Clip(d.polygons[first:])
}

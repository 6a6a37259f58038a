package decode

import (
	"slices"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/head"
)

// details is the memory for what the detections of an image have beside their boxes. It is used again for the image of the same number in
// the next request.
type details struct {
	all       []postprocess.Detail
	keypoints []postprocess.Keypoint
	masks     []postprocess.Mask
	logits    []float32
	oriented  []postprocess.OrientedBox
	weights   []float32 // of the prototypes of one mask
	columns   []int32   // scratch of one mask
	places    postprocess.DenseMap
	classes   []uint8
	depths    []float32
}

// room makes place for so many elements and gives all that there are.
func room[T any](memory *[]T, count int) []T {
	*memory = slices.Grow((*memory)[:0], count)[:count]
	return *memory
}

// describe fills in what the head knows of the detections of finish beside their boxes.
func (d *Decoder) describe(found []postprocess.Detection) {
	if !d.detailed || d.img.details == nil || len(found) == 0 {
		return
	}
	all := room(&d.img.details.all, len(found))
	for i := range found {
		all[i] = postprocess.Detail{}
		found[i].Detail = &all[i]
	}
	switch d.layout {
	case head.LayoutPose, head.LayoutPoseEnd2End:
		d.keypoints(found)
	case head.LayoutSegment, head.LayoutSegmentEnd2End:
		d.masks(found)
	case head.LayoutRFDETRSegment:
		d.queryMasks(found)
	case head.LayoutOBB, head.LayoutOBBEnd2End:
		d.turn(found)
	}
}

// extra reads what a box has beside its coordinates and scores. The head has measured its outputs, so that every number lies within.
type extra struct {
	engine.Numbers
	data []float32
}

func (d *Decoder) extra() extra {
	at, _ := d.now.ExtraNumbers()
	return extra{at, d.part(at.Output)}
}

func (e *extra) at(box int32, i int) float32 {
	return e.data[e.Offset+int64(box)*e.Step+int64(i)*e.Next]
}

// of are all numbers that a box has, so many, where they lie one after another.
func (e *extra) of(box int32, count int) []float32 {
	return e.data[e.Offset+int64(box)*e.Step:][:count]
}

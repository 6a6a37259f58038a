package evaluate

import (
	"math"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
)

// Similarity is the measure by which detections are compared with labelled objects.
type Similarity uint8

// The measures: IoU of boxes, IoU of masks by pixel and object keypoint similarity as in COCO, and probabilistic IoU of oriented boxes as
// in Ultralytics.
const (
	ByBox Similarity = iota
	ByMask
	ByKeypoints
	ByOriented
)

// SimilarityOf returns the measure of a task.
func SimilarityOf(task engine.Task) Similarity {
	switch task {
	case engine.Segment:
		return ByMask
	case engine.Pose:
		return ByKeypoints
	case engine.OBB:
		return ByOriented
	}
	return ByBox
}

// String returns a description.
func (m Similarity) String() string {
	return [...]string{"boxes by IoU", "masks by IoU", "keypoints by OKS", "oriented boxes by probabilistic IoU"}[m]
}

// maxPoses is COCO's limit of detections per class and image for keypoints.
const maxPoses = 20

func (m Similarity) maxDetections() int {
	if m == ByKeypoints {
		return maxPoses
	}
	return maxDetections
}

// Labelled reports whether the object has the labels that the measure needs.
func (m Similarity) Labelled(t *Truth) bool {
	switch m {
	case ByMask:
		return t.Mask != nil
	case ByKeypoints:
		return t.Keypoints != nil
	case ByOriented:
		return t.Oriented != nil
	}
	return true
}

// ignores reports whether detections of the object do not count.
func (m Similarity) ignores(t *Truth) bool {
	return t.Crowd || m == ByKeypoints && visible(t.Keypoints) == 0
}

// Region is a labelled mask on an image of Width x Height pixels.
type Region struct {
	Width, Height int

	runs     postprocess.Runs
	polygons [][]float64 // source of runs, filled on demand
}

// Runs returns the pixels of the region. The first call fills the labelled outline.
func (r *Region) Runs() postprocess.Runs {
	if r.runs == nil {
		r.runs, r.polygons = fill(r.polygons, r.Width, r.Height), nil
	}
	return r.runs
}

// overlap returns the similarity of a detection and an object, 0 to 1. runs caches the detection's rasterized mask.
func (m Similarity) overlap(d *postprocess.Detection, t *Truth, runs *postprocess.Runs) float64 {
	if m == ByBox {
		return overlapOf(d.Box, t)
	}
	if !m.Labelled(t) || d.Detail == nil {
		return 0
	}
	switch m {
	case ByMask:
		if d.Detail.Mask == nil {
			return 0
		}
		if len(*runs) == 0 {
			*runs = d.Detail.Mask.AppendRuns(*runs, t.Mask.Width, t.Mask.Height)
		}
		return runs.IoU(t.Mask.Runs(), t.Crowd)
	case ByKeypoints:
		return keypointSimilarity(d.Detail.Keypoints, t)
	}
	if d.Detail.Oriented == nil {
		return 0
	}
	a, b := d.Detail.Oriented.Gaussian(), t.Oriented.Gaussian()
	return a.ProbIoU(&b)
}

// cocoDeviations are the OKS sigmas of COCO's 17 keypoints, in shares of the object's scale.
var cocoDeviations = [...]float64{
	0.026, 0.025, 0.025, 0.035, 0.035, 0.079, 0.079, 0.072, 0.072, 0.062, 0.062, 0.107, 0.107, 0.087, 0.087, 0.089, 0.089,
}

// deviation returns the sigma of a keypoint. Without labelled sigmas, 17 keypoints use COCO's and others 1/n, as in Ultralytics.
func (t *Truth) deviation(point int) float64 {
	switch of := len(t.Keypoints); {
	case len(t.Deviations) == of:
		return t.Deviations[point]
	case of == len(cocoDeviations):
		return cocoDeviations[point]
	default:
		return 1 / float64(of)
	}
}

func visible(points []postprocess.Keypoint) (count int) {
	for i := range points {
		if points[i].Score > 0 {
			count++
		}
	}
	return count
}

// boxFill is the share of its box that an object without a labelled area fills, as in Ultralytics.
const boxFill = 0.53

// keypointSimilarity is COCO's object keypoint similarity (OKS). If no keypoint is labelled, the distance from twice the box counts.
func keypointSimilarity(points []postprocess.Keypoint, t *Truth) float64 {
	if len(points) != len(t.Keypoints) || len(points) == 0 {
		return 0
	}
	scale := t.Area
	if scale == 0 {
		scale = boxFill * area(t.Box)
	}
	scale += math.Nextafter(1, 2) - 1
	labelled, sum := visible(t.Keypoints), 0.0
	x1, y1 := float64(t.X1), float64(t.Y1)
	x2, y2 := float64(t.X2), float64(t.Y2)
	width, height := x2-x1, y2-y1
	for i := range points {
		x, y := float64(points[i].X), float64(points[i].Y)
		var dx, dy float64
		switch {
		case labelled == 0:
			dx = max(0, x1-width-x) + max(0, x-x2-width)
			dy = max(0, y1-height-y) + max(0, y-y2-height)
		case t.Keypoints[i].Score > 0:
			dx, dy = x-float64(t.Keypoints[i].X), y-float64(t.Keypoints[i].Y)
		default:
			continue
		}
		s := 2 * t.deviation(i)
		sum += math.Exp(-(dx*dx + dy*dy) / (s * s) / scale / 2)
	}
	if labelled == 0 {
		labelled = len(points)
	}
	return sum / float64(labelled)
}

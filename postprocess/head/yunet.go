package head

import (
	"math"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/scan"
)

// LayoutYuNet is [B,N,1], [B,N,1], [B,N,4] and [B,N,10] for each of the strides 8, 16 and 32, with a row for each cell: a class score and
// an objectness, whose geometric mean is the score of a face; the offset of the box's centre from the cell's corner in cells and the
// logarithms of width and height in cells; and five keypoints as offsets from that corner in cells. Source: FaceDetectorYN of OpenCV.
const LayoutYuNet Layout = "yunet"

// yunetScales is the number of strides.
const yunetScales = 3

type yunet struct {
	scoredLabels
	noBoxMap
}

func (yunet) describe() Description {
	return Description{
		Layout: LayoutYuNet, Task: engine.Detect, Form: "[B,N,1], [B,N,1], [B,N,4] and [B,N,10] for each scale", Networks: "YuNet from 2023 on",
		Gives: "box, score and keypoints of each face", Preset: "yunet",
	}
}

// findOutputs uses the names in OpenCV's files, because class scores and objectness have the same shapes.
func (yunet) findOutputs(n *network) [][]int {
	var names [][]string
	for _, kind := range []string{"cls", "obj", "bbox", "kps"} {
		names = append(names, []string{kind + "_8"}, []string{kind + "_16"}, []string{kind + "_32"})
	}
	all := n.named(names...)
	if all == nil {
		return nil
	}
	return [][]int{all}
}

func (h yunet) measure(shapes [][]int64) (s sizes, err error) {
	s.classes = 1
	s.extra = faceKeypoints
	columns := []int64{1, 1, faceBox, faceKeypoints}
	for i, shape := range shapes {
		if len(shape) != 3 || shape[2] != columns[i/yunetScales] || shape[1] != shapes[i%yunetScales][1] {
			return sizes{}, mismatch(h, shapes)
		}
		switch {
		case i >= yunetScales || s.boxes < 0:
		case shape[1] < 0:
			s.boxes = -1
		default:
			s.boxes += shape[1]
		}
	}
	return s, nil
}

func (yunet) recognise(*network, *match) (evidence, doubt string) {
	return "the outputs' names: class scores, objectness, boxes and keypoints of three scales", ""
}

func (yunet) keypoints(*match) (count int, names [][]string) {
	return facePoints, [][]string{faceKeypointNames()}
}

func (yunet) newDecoder(s *settings) decoder {
	return &yunetDecoder{boxes: newBoxes(s), skeleton: postprocess.NewSkeleton(faceKeypointNames())}
}

type yunetDecoder struct {
	boxes
	poses
	skeleton *postprocess.Skeleton
	levels   [yunetScales]faceLevel
}

func (d *yunetDecoder) decode(in *input, dst []postprocess.Detection) ([]postprocess.Detection, error) {
	levels := d.levels[:]
	if !measureLevels(levels, in) || levels[0].each*levels[1].each*levels[2].each != 1 {
		return dst, in.mismatch()
	}
	d.beginList(int(in.match.boxes))
	least := d.leastMinScore() * d.leastMinScore()
	for i := range levels {
		objectness, boxes := in.tensors[yunetScales+i].data, in.tensors[2*yunetScales+i].data
		for row, class := range in.tensors[i].data {
			product := max(class, 0) * max(objectness[row], 0) // rounding may leave a little less than 0
			if product < least && !in.scoresOnly {
				continue
			}
			score := float32(math.Sqrt(float64(product)))
			if in.scoresOnly {
				if !(score >= scan.MinScore && score <= scan.MaxScore) {
					in.stats.BadScores++
				}
				continue
			}
			d.addFace(in, &levels[i], boxes[faceBox*row:][:faceBox], score, row)
		}
	}
	if in.scoresOnly {
		return dst, nil
	}
	before := len(dst)
	dst = d.finish(in, dst)
	d.poses.addFaces(in, levels, d.origins, d.skeleton, dst[before:])
	return dst, nil
}

// addFace adds the box of a row of a scale as a candidate.
func (d *yunetDecoder) addFace(in *input, l *faceLevel, box []float32, score float32, row int) {
	x, y := l.corner(l.first + row)
	stride := float32(l.stride)
	x += stride * box[0]
	y += stride * box[1]
	width, height := stride*exp(box[2]), stride*exp(box[3])
	found := [engine.CandidateFields]float32{x - width/2, y - height/2, x + width/2, y + height/2, score, 0}
	d.take(in, &found, int32(l.first+row))
}

package head

import "github.com/edge-infer/edge-infer/postprocess"

// poses is memory for the keypoints of detections, for heads of poses and faces.
type poses struct {
	results perImage[poseResult]
}

type poseResult struct {
	details   []postprocess.Detail
	keypoints []postprocess.Keypoint
}

// add adds keypoints to every detection, points for each. read writes the keypoints of a detection in pixels of the network's input and
// returns their skeleton.
func (p *poses) add(
	in *input, found []postprocess.Detection, points int, read func(i int, own []postprocess.Keypoint) *postprocess.Skeleton,
) {
	result := p.results.at(in.index)
	setDetails(&result.details, found)
	all := resize(&result.keypoints, points*len(found))
	for i := range found {
		own := all[i*points : (i+1)*points : (i+1)*points]
		found[i].Detail.Skeleton = read(i, own)
		found[i].Detail.Keypoints = own
	}
	in.placeKeypoints(all)
}

// placeKeypoints maps keypoints from the network's input to the source image and clamps them to it. NaN and infinite ones get the score 0.
func (in *input) placeKeypoints(points []postprocess.Keypoint) {
	t := in.transform
	right, bottom := float32(in.width), float32(in.height)
	for i := range points {
		p := &points[i]
		x := (p.X - t.PadX) / t.ScaleX
		y := (p.Y - t.PadY) / t.ScaleY
		score := p.Score
		if !(finite(x) && finite(y) && finite(score)) {
			x, y, score = 0, 0, 0
		}
		*p = postprocess.Keypoint{X: min(max(x, 0), right), Y: min(max(y, 0), bottom), Score: min(max(score, 0), 1)}
	}
}

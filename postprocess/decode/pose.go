package decode

import "github.com/edge-infer/edge-infer/postprocess"

// keypoints gives every detection its points, moved onto the image where they lie outside. One whose place is no number scores 0.
func (d *Decoder) keypoints(found []postprocess.Detection) {
	points, each := d.now.Keypoints()
	from, transform := d.extra(), &d.img.transform
	right, bottom := float32(d.img.width), float32(d.img.height)
	all := room(&d.img.details.keypoints, points*len(found))
	for i := range found {
		own := all[i*points : (i+1)*points : (i+1)*points]
		found[i].Detail.Keypoints, found[i].Detail.Skeleton = own, d.skeleton(found[i].Class)
		box := d.origins[i]
		for k := range own {
			x := (from.at(box, k*each) - transform.PadX) / transform.ScaleX
			y := (from.at(box, k*each+1) - transform.PadY) / transform.ScaleY
			score := float32(1)
			if each == 3 {
				score = from.at(box, k*each+2)
			}
			if !(finite(x) && finite(y) && finite(score)) {
				x, y, score = 0, 0, 0
			}
			own[k] = postprocess.Keypoint{X: min(max(x, 0), right), Y: min(max(y, 0), bottom), Score: min(max(score, 0), 1)}
		}
	}
}

// name makes the skeletons of names by class.
func (d *Decoder) name(names [][]string) {
	d.pointNames, d.skeletons = names, make([]*postprocess.Skeleton, len(names))
	for class, own := range names {
		if own != nil {
			d.skeletons[class] = postprocess.NewSkeleton(own)
		}
	}
}

// skeleton is that of a class's objects; nil where their points have no names.
func (d *Decoder) skeleton(class int) *postprocess.Skeleton {
	switch {
	case len(d.skeletons) == 1:
		return d.skeletons[0]
	case class >= 0 && class < len(d.skeletons):
		return d.skeletons[class]
	}
	return nil
}

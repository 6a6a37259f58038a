package draw

import (
	"image"
	"image/color"

	"github.com/edge-infer/edge-infer/postprocess"
)

// minKeypointScore is the minimum score of a painted keypoint.
const minKeypointScore = 0.5

// minNamedLines is the minimum height of an object in lines of text for keypoint names.
const minNamedLines = 8

// maskAlpha is the opacity of masks, of 255.
const maskAlpha = 110

// limbs join the 17 keypoints of COCO's people: nose, eyes, ears, shoulders, elbows, wrists, hips, knees and ankles, the left one first.
var limbs = [...][2]int{
	{0, 1}, {0, 2}, {1, 3}, {2, 4}, {1, 2}, {3, 5}, {4, 6}, // head
	{5, 6}, {5, 7}, {7, 9}, {6, 8}, {8, 10}, // arms
	{5, 11}, {6, 12}, {11, 12}, {11, 13}, {13, 15}, {12, 14}, {14, 16}, // legs
}

// mask tints the pixels of an object.
func (p *Painter) mask(img *Image, m *postprocess.Mask, c color.RGBA) {
	p.runs = m.AppendRuns(p.runs[:0], img.Width, img.Height)
	at := 0 // pixel index, column by column
	for i, length := range p.runs {
		if i&1 == 1 {
			for pixel := at; pixel < at+int(length); pixel++ {
				img.blend(pixel/img.Height, pixel%img.Height, c, maskAlpha)
			}
		}
		at += int(length)
	}
}

// oriented paints the border of an oriented box.
func (img *Image) oriented(o *postprocess.OrientedBox, thickness float32, c color.RGBA) {
	corners := o.Corners()
	for i := range corners {
		img.stroke(Point(corners[i]), Point(corners[(i+1)%len(corners)]), thickness, c)
	}
}

// keypoints paints the keypoints of an object, and the limbs of a person.
func (img *Image) keypoints(detail *postprocess.Detail, thickness float32, c color.RGBA) {
	points := detail.Keypoints
	if detail.IsPerson() {
		for _, limb := range limbs {
			a, b := &points[limb[0]], &points[limb[1]]
			if a.Score >= minKeypointScore && b.Score >= minKeypointScore {
				img.stroke(Point{a.X, a.Y}, Point{b.X, b.Y}, thickness, c)
			}
		}
	}
	for i := range points {
		if k := &points[i]; k.Score >= minKeypointScore {
			img.stroke(Point{k.X, k.Y}, Point{k.X, k.Y}, 2.5*thickness, ink(c))
			img.stroke(Point{k.X, k.Y}, Point{k.X, k.Y}, 1.5*thickness, c)
		}
	}
}

// object paints a detection: its mask, its box or oriented box, and its keypoints, with their names if it is not a person and large enough.
func (p *Painter) object(img *Image, face *typeface, f *postprocess.Detection, box image.Rectangle, c color.RGBA) {
	width := thickness(img.Height)
	detail := f.Detail
	if detail == nil {
		img.frame(box, width, c)
		return
	}
	if detail.Mask != nil {
		p.mask(img, detail.Mask, c)
	}
	if detail.Oriented != nil {
		img.oriented(detail.Oriented, float32(width), c)
	} else {
		img.frame(box, width, c)
	}
	img.keypoints(detail, float32(width), c)
	if s := detail.Skeleton; s != nil && !s.Person && len(s.Names) == len(detail.Keypoints) && box.Dy() >= minNamedLines*face.height() {
		for i := range detail.Keypoints {
			if k := &detail.Keypoints[i]; k.Score >= minKeypointScore {
				p.text = append(p.text[:0], s.Names[i]...)
				at := image.Pt(pixel(k.X)+2*width, pixel(k.Y)+face.height()/2)
				p.note(img, face, image.Rectangle{Min: at, Max: at}, c)
			}
		}
	}
}

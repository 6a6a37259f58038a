package evaluate

import (
	"math"

	"github.com/edge-infer/edge-infer/postprocess"
)

// relativeLabel holds the labels of a line besides the box, in shares of the image's sides.
type relativeLabel struct {
	outline []float64 // x, y, x, y and so on
	points  []float64 // numbers of the keypoints
	each    int       // numbers per keypoint
}

// place converts the relative labels to an image of the given size. An outline of four corners may also be an oriented box.
func (t *Truth) place(width, height int) {
	d := &t.relative
	if d.outline != nil {
		corners := make([]float64, len(d.outline))
		for i := 0; i < len(corners); i += 2 {
			corners[i], corners[i+1] = d.outline[i]*float64(width), d.outline[i+1]*float64(height)
		}
		t.Mask = &Region{Width: width, Height: height, polygons: [][]float64{corners}}
		t.Oriented = nil
		if len(corners) == 8 {
			t.Oriented = rectangle([8]float64(corners))
		}
	}
	if d.points != nil {
		t.Keypoints = t.Keypoints[:0]
		for i := 0; i < len(d.points); i += d.each {
			k := postprocess.Keypoint{X: float32(d.points[i] * float64(width)), Y: float32(d.points[i+1] * float64(height)), Score: 1}
			if d.each == 3 {
				k.Score = float32(min(d.points[i+2], 1))
			}
			t.Keypoints = append(t.Keypoints, k)
		}
	}
}

// rectangle returns the rectangle closest to four corners in order, with equal opposite sides.
func rectangle(c [8]float64) *postprocess.OrientedBox {
	ux, uy := (c[2]-c[0]+c[4]-c[6])/2, (c[3]-c[1]+c[5]-c[7])/2
	vx, vy := (c[6]-c[0]+c[4]-c[2])/2, (c[7]-c[1]+c[5]-c[3])/2
	return &postprocess.OrientedBox{
		X: float32((c[0] + c[2] + c[4] + c[6]) / 4), Y: float32((c[1] + c[3] + c[5] + c[7]) / 4),
		Width: float32(math.Hypot(ux, uy)), Height: float32(math.Hypot(vx, vy)), Angle: float32(math.Atan2(uy, ux)),
	}
}

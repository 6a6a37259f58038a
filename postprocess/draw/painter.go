package draw

import (
	"image"
	"image/color"
	"math"
	"strconv"

	"github.com/edge-infer/edge-infer/postprocess"
)

// Mark is one object to paint.
type Mark struct {
	postprocess.Detection
	// Track is the track ID, 0 for none.
	Track uint64
}

// Painter paints detections and maps. Line width and letter size follow the image's height. One goroutine at a time may use it; it
// allocates nothing once the letters of a size have been drawn.
type Painter struct {
	// Labels are the class names; a class without one is painted as "class N".
	Labels []string

	faces map[int]*typeface
	text  []byte
	runs  postprocess.Runs
}

// The letter size in pixels is bounded by legibility below and by the space that it takes above.
const minLetter, maxLetter = 12, 40

// face returns the typeface for an image of the given height.
func (p *Painter) face(height int) (*typeface, error) {
	pixels := min(max(height/45, minLetter), maxLetter)
	if face, ok := p.faces[pixels]; ok {
		return face, nil
	}
	face, err := newTypeface(pixels)
	if err != nil {
		return nil, err
	}
	if p.faces == nil {
		p.faces = make(map[int]*typeface)
	}
	p.faces[pixels] = face
	return face, nil
}

func thickness(height int) int { return max(2, (height+180)/360) }

// Marks paints every detection with its box, label, score, attributes and track ID, and its mask, oriented box or keypoints. Later ones
// cover earlier ones. Everything is clipped to the image, and labels are moved inside.
func (p *Painter) Marks(img Image, marks []Mark) error {
	if err := img.Validate(); err != nil {
		return err
	}
	face, err := p.face(img.Height)
	if err != nil {
		return err
	}
	for i := range marks {
		mark := &marks[i]
		c := Colour(mark.Class)
		box := image.Rectangle{
			Min: image.Pt(pixel(mark.X1+0.5), pixel(mark.Y1+0.5)),
			Max: image.Pt(pixel(mark.X2+0.5), pixel(mark.Y2+0.5)),
		}
		if box.Empty() || !box.Overlaps(img.bounds()) {
			continue
		}
		p.object(&img, face, &mark.Detection, box, c)
		p.caption(&img, face, mark, box, c)
	}
	return nil
}

// caption paints the label of a detection above its box, or inside if there is no room.
func (p *Painter) caption(img *Image, face *typeface, mark *Mark, box image.Rectangle, c color.RGBA) {
	p.text = p.text[:0]
	if mark.Class >= 0 && mark.Class < len(p.Labels) {
		p.text = append(p.text, p.Labels[mark.Class]...)
	} else {
		p.text = strconv.AppendInt(append(p.text, "class "...), int64(mark.Class), 10)
	}
	if score := float64(mark.Score); !math.IsNaN(score) && !math.IsInf(score, 0) {
		p.text = strconv.AppendFloat(append(p.text, ' '), score, 'f', 2, 32)
	}
	if mark.Detail != nil {
		for i := range mark.Detail.Attributes {
			p.text = append(append(p.text, ' '), mark.Detail.Attributes[i].Value...)
		}
	}
	if mark.Track != 0 {
		p.text = strconv.AppendUint(append(p.text, " #"...), mark.Track, 10)
	}
	p.note(img, face, box.Min.X, box.Min.Y, c)
}

// note paints p.text on a background of colour c with its bottom left corner at x, y, moved onto the image.
func (p *Painter) note(img *Image, face *typeface, x, y int, c color.RGBA) {
	margin := max(2, face.ascent/6)
	width, height := face.width(p.text)+2*margin, face.height()
	x = max(0, min(x, img.Width-width))
	top := y - height
	if top < 0 {
		top = max(0, min(y, img.Height-height))
	}
	img.fill(image.Rect(x, top, x+width, top+height), c)
	face.write(img, p.text, x+margin, top+face.ascent, ink(c))
}

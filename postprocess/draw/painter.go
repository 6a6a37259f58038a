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
	// Track is the object's number, 0 for none.
	Track uint64
}

// Painter paints marks, polygons and lines. Line width and letter size follow the image's height. One goroutine at a time; once the
// letters of a size have been drawn it allocates nothing.
type Painter struct {
	// Labels are the classes' names; a class without one is painted as "class N".
	Labels []string

	faces map[int]*typeface
	text  []byte
	runs  postprocess.Runs
}

// Text shorter than this cannot be read, longer than that hides the image.
const minLetter, maxLetter = 12, 40

// face returns the letters for an image of that height.
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

// Marks paints a box with label, score, attributes and track number for every mark, and the mask, turned box or keypoints that it has.
// Later marks cover earlier ones. What lies outside the image is cut off, and a label that would leave it moves inside.
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

// caption paints the label on its ground, above the box where there is room, else inside.
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

// note paints p.text on a ground of colour c whose bottom left corner is x, y, moved onto the image.
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

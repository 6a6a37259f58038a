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
	notes []image.Rectangle // texts on the image since Marks, which later ones keep clear of
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

// Marks paints every detection with its box, label, score, attributes and track ID, and its mask, oriented box or keypoints. Everything is
// clipped to the image. Labels are above all boxes and do not cover each other as long as there is room. It is called first for each image.
func (p *Painter) Marks(img Image, marks []Mark) error {
	if err := img.Validate(); err != nil {
		return err
	}
	face, err := p.face(img.Height)
	if err != nil {
		return err
	}
	p.notes = p.notes[:0]
	for i := range marks {
		if box := marks[i].bounds(); !box.Empty() && box.Overlaps(img.bounds()) {
			p.object(&img, face, &marks[i].Detection, box, Colour(marks[i].Class))
		}
	}
	for i := range marks {
		if box := marks[i].bounds(); !box.Empty() && box.Overlaps(img.bounds()) {
			p.caption(&img, face, &marks[i], box, Colour(marks[i].Class))
		}
	}
	return nil
}

// bounds returns the pixels of the box.
func (m *Mark) bounds() image.Rectangle {
	return image.Rectangle{
		Min: image.Pt(pixel(m.X1+0.5), pixel(m.Y1+0.5)),
		Max: image.Pt(pixel(m.X2+0.5), pixel(m.Y2+0.5)),
	}
}

// caption paints the label of a detection at its box.
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
	p.note(img, face, box, c)
}

// note paints p.text on a background of colour c above a box, or where else at the box it is on the image and covers no other text. A text
// that is wider than the image ends with dots.
func (p *Painter) note(img *Image, face *typeface, box image.Rectangle, c color.RGBA) {
	margin := max(2, face.ascent/6)
	p.text = face.shorten(p.text, img.Width-2*margin)
	at := p.place(img, box, face.width(p.text)+2*margin, face.height())
	if len(p.notes) < maxNotes {
		p.notes = append(p.notes, at)
	}
	img.fill(at, c)
	face.write(img, p.text, at.Min.X+margin, at.Min.Y+face.ascent, ink(c))
}

// maxNotes bounds the texts that others keep clear of, and nearNotes the lines that a text may be away from its box.
const maxNotes, nearNotes = 1024, 4

// place returns where a text goes: above the box, inside of it or below, at its left or right side, or some lines further, at the first
// place that is on the image and free; else above the box, moved onto the image.
func (p *Painter) place(img *Image, box image.Rectangle, width, height int) image.Rectangle {
	onto := func(p image.Point) image.Point {
		return image.Pt(max(0, min(p.X, img.Width)), max(0, min(p.Y, img.Height)))
	}
	box = image.Rectangle{Min: onto(box.Min), Max: onto(box.Max)}
	first := image.Rectangle{}
	for step := range nearNotes {
		for _, top := range [...]int{
			box.Min.Y - (step+1)*height, box.Min.Y + step*height, box.Max.Y + step*height, box.Max.Y - (step+1)*height,
		} {
			if top < 0 || top+height > img.Height {
				continue
			}
			for _, left := range [...]int{box.Min.X, box.Max.X - width} {
				left = max(0, min(left, img.Width-width))
				at := image.Rect(left, top, left+width, top+height)
				if first.Empty() {
					first = at
				}
				if !p.covers(at) {
					return at
				}
			}
		}
	}
	if first.Empty() { // a text is higher than the image
		left, top := max(0, min(box.Min.X, img.Width-width)), max(0, min(box.Min.Y-height, img.Height-height))
		first = image.Rect(left, top, left+width, top+height)
	}
	return first
}

// covers reports whether a text at that place would cover another one.
func (p *Painter) covers(at image.Rectangle) bool {
	for _, other := range p.notes {
		if at.Overlaps(other) {
			return true
		}
	}
	return false
}

// Package plot draws diagrams as SVG and PNG: curves and points over two axes, and matrices. It knows nothing of what the numbers mean.
package plot

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
)

// Figure is a row of diagrams.
type Figure struct {
	Title  string // over all of them; may be empty
	Panels []Panel
}

// Panel is a *Chart or a *Matrix.
type Panel interface {
	// size is how much room the panel wants, in points.
	size() (width, height float64)
	// draw draws into a rectangle of at least that height.
	draw(c canvas, r rectangle)
}

// Formats are the file name extensions that Encode takes.
func Formats() []string { return []string{".svg", ".png"} }

// CheckPath refuses the name of a file whose extension is none of Formats.
func CheckPath(path string) error {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".svg", ".png":
		return nil
	}
	return fmt.Errorf("%q is no diagram's name (let it end with %s)", path, strings.Join(Formats(), " or "))
}

// Encode gives the bytes of a file of that name: a PNG when it ends so, else an SVG.
func (f *Figure) Encode(path string) ([]byte, error) {
	if strings.ToLower(filepath.Ext(path)) == ".png" {
		return f.PNG()
	}
	return f.SVG(), nil
}

// SVG gives the figure as a document of its own; one unit is one CSS pixel.
func (f *Figure) SVG() []byte {
	width, height := f.size()
	c := &svg{}
	c.begin(width, height)
	f.draw(c, width, height)
	c.text.WriteString("</svg>\n")
	return c.text.Bytes()
}

// PNG gives the figure at two pixels a point, which is sharp on most screens and in print.
func (f *Figure) PNG() ([]byte, error) {
	width, height := f.size()
	c := newRaster(width, height, 2)
	f.draw(c, width, height)
	var out bytes.Buffer
	if err := c.encode(&out); err != nil {
		return nil, fmt.Errorf("encode diagram: %w", err)
	}
	return out.Bytes(), nil
}

// titleSpace is the height of the figure's title.
func (f *Figure) titleSpace() float64 {
	if f.Title == "" {
		return 0
	}
	return 1.8 * titleSize
}

func (f *Figure) size() (width, height float64) {
	width, height = gap, 0
	for _, p := range f.Panels {
		w, h := p.size()
		width, height = width+w+gap, max(height, h)
	}
	return width, height + f.titleSpace() + 2*gap
}

func (f *Figure) draw(c canvas, width, height float64) {
	c.area([]point{{0, 0}, {width, 0}, {width, height}, {0, height}}, paper)
	top := gap + f.titleSpace()
	if f.Title != "" {
		c.write(point{width / 2, gap + titleSize}, f.Title, label{size: titleSize, colour: ink, align: middle})
	}
	left := gap
	for _, p := range f.Panels {
		w, _ := p.size()
		p.draw(c, rectangle{left, top, left + w, height - gap})
		left += w + gap
	}
}

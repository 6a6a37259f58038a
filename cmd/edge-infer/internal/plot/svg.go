package plot

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"image/color"
	"strconv"
)

// svg is a canvas that writes SVG.
type svg struct{ text bytes.Buffer }

func (s *svg) begin(width, height float64) {
	fmt.Fprintf(&s.text, `<svg xmlns="http://www.w3.org/2000/svg" width="%s" height="%s" viewBox="0 0 %s %s" font-family="sans-serif">`+"\n",
		number(width), number(height), number(width), number(height))
}

// number has as many digits as can be seen.
func number(v float64) string { return strconv.FormatFloat(float64(int64(v*100+0.5))/100, 'f', -1, 64) }

func paint(c color.NRGBA) string { return fmt.Sprintf("#%02x%02x%02x", c.R, c.G, c.B) }

func (s *svg) points(points []point) {
	for i, p := range points {
		if i > 0 {
			s.text.WriteByte(' ')
		}
		s.text.WriteString(number(p.x) + "," + number(p.y))
	}
}

func (s *svg) line(points []point, width, dash float64, colour color.NRGBA) {
	s.text.WriteString(`<polyline points="`)
	s.points(points)
	fmt.Fprintf(&s.text, `" fill="none" stroke="%s" stroke-width="%s" stroke-linejoin="round"`, paint(colour), number(width))
	if dash > 0 {
		fmt.Fprintf(&s.text, ` stroke-dasharray="%s"`, number(dash))
	}
	s.text.WriteString("/>\n")
}

func (s *svg) area(points []point, colour color.NRGBA) {
	s.text.WriteString(`<polygon points="`)
	s.points(points)
	fmt.Fprintf(&s.text, `" fill="%s"/>`+"\n", paint(colour))
}

func (s *svg) disc(centre point, radius float64, colour color.NRGBA) {
	fmt.Fprintf(&s.text, `<circle cx="%s" cy="%s" r="%s" fill="%s"/>`+"\n", number(centre.x), number(centre.y), number(radius), paint(colour))
}

func (s *svg) write(at point, text string, l label) {
	fmt.Fprintf(&s.text, `<text x="%s" y="%s" font-size="%s" fill="%s"`, number(at.x), number(at.y), number(l.size), paint(l.colour))
	if l.align != start {
		fmt.Fprintf(&s.text, ` text-anchor="%s"`, [...]string{start: "start", middle: "middle", end: "end"}[l.align])
	}
	if l.upward {
		fmt.Fprintf(&s.text, ` transform="rotate(-90 %s %s)"`, number(at.x), number(at.y))
	}
	s.text.WriteByte('>')
	_ = xml.EscapeText(&s.text, []byte(text)) // a buffer takes everything
	s.text.WriteString("</text>\n")
}

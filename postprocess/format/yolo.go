package format

import (
	"strconv"

	"github.com/edge-infer/edge-infer/postprocess"
)

// YOLO writes label files as Ultralytics does: a line per object with its class and, in shares of the image's sides, the centre and size of
// its box, the outline of its mask, or the corners of its oriented box; keypoints follow. One goroutine at a time.
type YOLO struct {
	Scores bool // at the end of each line

	tracer postprocess.Tracer
}

// Name returns the name of an image's label file; frames of a video are numbered from 1.
func (*YOLO) Name(p *Image) string {
	name := Stem(p.Path)
	if p.Video {
		name += "_" + strconv.Itoa(p.Frame+1)
	}
	return name + ".txt"
}

// Append appends the lines of an image. As in Ultralytics, a mask is represented by its largest part, or by its box without an outline; a
// classification by its five best classes with probability and label.
func (y *YOLO) Append(dst []byte, p *Image, labels []string) []byte {
	width, height := float32(p.Width), float32(p.Height)
	for i := range p.Detections {
		f := &p.Detections[i]
		if f.Detail != nil && f.Detail.Probabilities != nil {
			if i < 5 {
				dst = strconv.AppendFloat(dst, float64(f.Score), 'f', 2, 32)
				dst = append(append(append(dst, ' '), postprocess.Label(labels, f.Class)...), '\n')
			}
			continue
		}
		dst = strconv.AppendInt(dst, int64(f.Class), 10)
		dst = y.shape(dst, f, width, height)
		if f.Detail != nil {
			for _, k := range f.Detail.Keypoints {
				dst = number(number(number(dst, k.X/width), k.Y/height), k.Score)
			}
		}
		if y.Scores {
			dst = number(dst, f.Score)
		}
		dst = append(dst, '\n')
	}
	return dst
}

func (y *YOLO) shape(dst []byte, f *postprocess.Detection, width, height float32) []byte {
	if f.Detail != nil && f.Detail.Oriented != nil {
		for _, c := range f.Detail.Oriented.Corners() {
			dst = number(number(dst, c.X/width), c.Y/height)
		}
		return dst
	}
	if f.Detail != nil && f.Detail.Mask != nil {
		if parts := y.tracer.Outlines(f.Detail.Mask); len(parts) > 0 {
			for _, c := range parts[0] {
				dst = number(number(dst, c.X/width), c.Y/height)
			}
			return dst
		}
	}
	dst = number(number(dst, (f.X1+f.X2)/2/width), (f.Y1+f.Y2)/2/height)
	return number(number(dst, f.Width()/width), f.Height()/height)
}

// number appends a number with six significant digits, as %g.
func number(dst []byte, v float32) []byte {
	return strconv.AppendFloat(append(dst, ' '), float64(v), 'g', 6, 32)
}

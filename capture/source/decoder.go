package source

import (
	"errors"
	"unsafe"

	"gocv.io/x/gocv"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/engine"
)

// errNoImage is a decoder's word that OpenCV gave nothing.
var errNoImage = errors.New("no image")

// decoder lets OpenCV write into lent buffers, through one cv::Mat over each buffer, made when the buffer is first seen.
type decoder struct {
	// into decodes the current image and reports whether there was one.
	into func(mat *gocv.Mat) bool
	// image says what an OpenCV matrix of that form is.
	img   func(form form) (format engine.PixelFormat, size size, err error)
	limit sizeLimit

	form   form // of the last image; zero before the first
	format engine.PixelFormat
	size   size
	over   []gocv.Mat
	data   []*byte // what each of over lies over
	own    *gocv.Mat
}

// form is how OpenCV describes an image's memory.
type form struct {
	rows, columns int
	pixel         gocv.MatType
}

// maxWrapped bounds the list of matrices for a caller that lends from ever new pools.
const maxWrapped = 64

// decode puts the current image into a lent buffer. An image of the same form as the last one is written there by OpenCV; any other goes
// to memory of OpenCV's own, because its size is not known beforehand, and is copied once.
func (d *decoder) decode(lend capture.Lender) (capture.Frame, error) {
	if d.form == (form{}) {
		if !d.into(d.blank()) {
			return capture.Frame{}, errNoImage
		}
		return d.copy(lend, d.own)
	}
	f, err := lend.Frame(d.format, d.size.width, d.size.height)
	if err != nil {
		return capture.Frame{}, err
	}
	mat, err := d.wrap(f)
	if err != nil {
		f.Release()
		return capture.Frame{}, err
	}
	if !d.into(mat) {
		d.unwrap(f) // OpenCV lets go of the memory when it has no image
		f.Release()
		return capture.Frame{}, errNoImage
	}
	if holds(mat, f) {
		return f, nil
	}
	f.Release()
	return d.copy(lend, mat)
}

// copy takes an image out of OpenCV's memory and remembers its form for the next one.
func (d *decoder) copy(lend capture.Lender, mat *gocv.Mat) (capture.Frame, error) {
	data, err := mat.DataPtrUint8()
	if err != nil || len(data) == 0 {
		return capture.Frame{}, errNoImage
	}
	seen := form{mat.Rows(), mat.Cols(), mat.Type()}
	defer d.forget() // before the next image; mat is one of those
	d.form = form{}
	format, size, err := d.img(seen)
	if err == nil {
		err = d.limit.check(size, format)
	}
	if err != nil {
		return capture.Frame{}, err
	}
	f, err := lend.Frame(format, size.width, size.height)
	if err != nil {
		return capture.Frame{}, err
	}
	d.form, d.format, d.size = seen, format, size
	copy(f.Data, data)
	return f, nil
}

func (d *decoder) blank() *gocv.Mat {
	if d.own == nil {
		mat := gocv.NewMat()
		d.own = &mat
	}
	return d.own
}

func (d *decoder) wrap(f capture.Frame) (*gocv.Mat, error) {
	start := unsafe.SliceData(f.Data)
	for i, data := range d.data {
		if data == start {
			return &d.over[i], nil
		}
	}
	if len(d.over) == maxWrapped {
		d.forget()
	}
	mat, err := gocv.NewMatFromBytes(d.form.rows, d.form.columns, d.form.pixel, f.Data)
	if err != nil {
		return nil, err
	}
	d.over, d.data = append(d.over, mat), append(d.data, start)
	return &d.over[len(d.over)-1], nil
}

func (d *decoder) unwrap(f capture.Frame) {
	start := unsafe.SliceData(f.Data)
	for i, data := range d.data {
		if data == start {
			_ = d.over[i].Close()
			d.over, d.data = append(d.over[:i], d.over[i+1:]...), append(d.data[:i], d.data[i+1:]...)
			return
		}
	}
}

// forget drops every matrix, with the images that OpenCV moved to memory of its own.
func (d *decoder) forget() {
	for i := range d.over {
		_ = d.over[i].Close()
	}
	d.over, d.data = d.over[:0], d.data[:0]
	if d.own != nil {
		_ = d.own.Close()
		d.own = nil
	}
}

// holds reports whether the matrix' pixels are the frame's buffer.
func holds(mat *gocv.Mat, f capture.Frame) bool {
	data, err := mat.DataPtrUint8()
	return err == nil && len(data) > 0 && unsafe.SliceData(data) == unsafe.SliceData(f.Data)
}

// colourImage is the meaning of a matrix that OpenCV made itself: BGR or grey.
func colourImage(f form) (engine.PixelFormat, size, error) {
	switch f.pixel {
	case gocv.MatTypeCV8UC3:
		return engine.BGR, size{f.columns, f.rows}, nil
	case gocv.MatTypeCV8UC1:
		return engine.GRAY8, size{f.columns, f.rows}, nil
	}
	return 0, size{}, &capture.Error{Op: "read", Kind: capture.ErrFormat, Message: "OpenCV gave neither 8-bit BGR nor grey"}
}

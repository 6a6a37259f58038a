package source

import (
	"errors"
	"unsafe"

	"gocv.io/x/gocv"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/engine"
)

// errNoImage reports that OpenCV delivered no image.
var errNoImage = errors.New("no image")

// decoder lets OpenCV write into lent buffers through one cv::Mat per buffer, created when the buffer is first used.
type decoder struct {
	// decode decodes the current image and reports whether there was one.
	decode func(mat *gocv.Mat) bool
	// interpret returns pixel format and size of an image with the given matrix layout.
	interpret func(layout matLayout) (format engine.PixelFormat, size size, err error)
	limit     sizeLimit

	layout  matLayout // of the last image; zero before the first
	format  engine.PixelFormat
	size    size
	mats    []gocv.Mat
	buffers []*byte // memory of each of mats
	ownMat  *gocv.Mat
}

// matLayout is how OpenCV describes an image's memory.
type matLayout struct {
	rows, columns int
	pixel         gocv.MatType
}

// maxMats bounds the list of matrices if the caller lends from ever new pools.
const maxMats = 64

// read decodes the current image into a lent buffer. OpenCV writes an image with the layout of the last one directly into the buffer; for
// any other it allocates memory, because the size is not known beforehand, and the image is copied once.
func (d *decoder) read(lend capture.Lender) (capture.Frame, error) {
	if d.layout == (matLayout{}) {
		if !d.decode(d.ensureOwnMat()) {
			return capture.Frame{}, errNoImage
		}
		return d.copy(lend, d.ownMat)
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
	if !d.decode(mat) {
		d.unwrap(f) // OpenCV releases the memory if there is no image
		f.Release()
		return capture.Frame{}, errNoImage
	}
	if sharesMemory(mat, f) {
		return f, nil
	}
	f.Release()
	return d.copy(lend, mat)
}

// copy copies an image from OpenCV's memory and remembers its layout for the next one.
func (d *decoder) copy(lend capture.Lender, mat *gocv.Mat) (capture.Frame, error) {
	data, err := mat.DataPtrUint8()
	if err != nil || len(data) == 0 {
		return capture.Frame{}, errNoImage
	}
	seen := matLayout{mat.Rows(), mat.Cols(), mat.Type()}
	defer d.closeMats() // before the next image; closes mat too
	d.layout = matLayout{}
	format, size, err := d.interpret(seen)
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
	d.layout, d.format, d.size = seen, format, size
	copy(f.Data, data)
	return f, nil
}

func (d *decoder) ensureOwnMat() *gocv.Mat {
	if d.ownMat == nil {
		mat := gocv.NewMat()
		d.ownMat = &mat
	}
	return d.ownMat
}

func (d *decoder) wrap(f capture.Frame) (*gocv.Mat, error) {
	start := unsafe.SliceData(f.Data)
	for i, data := range d.buffers {
		if data == start {
			return &d.mats[i], nil
		}
	}
	if len(d.mats) == maxMats {
		d.closeMats()
	}
	mat, err := gocv.NewMatFromBytes(d.layout.rows, d.layout.columns, d.layout.pixel, f.Data)
	if err != nil {
		return nil, err
	}
	d.mats, d.buffers = append(d.mats, mat), append(d.buffers, start)
	return &d.mats[len(d.mats)-1], nil
}

func (d *decoder) unwrap(f capture.Frame) {
	start := unsafe.SliceData(f.Data)
	for i, data := range d.buffers {
		if data == start {
			_ = d.mats[i].Close()
			d.mats, d.buffers = append(d.mats[:i], d.mats[i+1:]...), append(d.buffers[:i], d.buffers[i+1:]...)
			return
		}
	}
}

// closeMats closes every matrix, and with it the images that OpenCV moved to its own memory.
func (d *decoder) closeMats() {
	for i := range d.mats {
		_ = d.mats[i].Close()
	}
	d.mats, d.buffers = d.mats[:0], d.buffers[:0]
	if d.ownMat != nil {
		_ = d.ownMat.Close()
		d.ownMat = nil
	}
}

// sharesMemory reports whether the matrix still uses the frame's buffer.
func sharesMemory(mat *gocv.Mat, f capture.Frame) bool {
	data, err := mat.DataPtrUint8()
	return err == nil && len(data) > 0 && unsafe.SliceData(data) == unsafe.SliceData(f.Data)
}

// interpretColour interprets a matrix allocated by OpenCV: BGR or grey.
func interpretColour(f matLayout) (engine.PixelFormat, size, error) {
	switch f.pixel {
	case gocv.MatTypeCV8UC3:
		return engine.BGR, size{f.columns, f.rows}, nil
	case gocv.MatTypeCV8UC1:
		return engine.GRAY8, size{f.columns, f.rows}, nil
	}
	return 0, size{}, &capture.Error{Op: "read", Kind: capture.ErrFormat, Message: "OpenCV gave neither 8-bit BGR nor grey"}
}

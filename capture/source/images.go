package source

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gocv.io/x/gocv"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/engine"
)

// maxImage bounds the encoded size in bytes of one image, and maxLargeImage that of a file where more pixels are allowed than cameras
// have: OpenCV counts an image's bytes in an int.
const (
	maxImage      = 64 << 20
	maxLargeImage = 1<<31 - 1
)

var (
	errTooLarge     = errors.New("more than 64 MiB")
	errFileTooLarge = errors.New("more than 2 GiB")
)

// images reads image files one after the other.
type images struct {
	ctx   context.Context
	uri   capture.URI
	files []string

	next int
	img  img
}

// openDirectory lists a directory's images in the order of their names.
func openDirectory(ctx context.Context, u capture.URI, options settings) (capture.Source, error) {
	entries, err := os.ReadDir(u.Address)
	if err != nil {
		return nil, u.NewError("open", capture.ErrUnavailable, "", "", cause(err))
	}
	var files []string
	for _, entry := range entries {
		if !entry.IsDir() && IsImage(entry.Name()) && !strings.HasPrefix(entry.Name(), ".") {
			files = append(files, filepath.Join(u.Address, entry.Name()))
		}
	}
	if len(files) == 0 {
		return nil, u.NewError("open", capture.ErrNotFound, "no image in this directory", "known: "+strings.Join(imageSuffixes, " "), nil)
	}
	return newImages(ctx, u, files, options), nil
}

func newImages(ctx context.Context, u capture.URI, files []string, options settings) *images {
	p := &images{ctx: ctx, uri: u, files: files}
	p.img.decoder.limit = sizeLimit(options.MaxPixels)
	p.img.large = options.MaxPixels > capture.DefaultMaxPixels
	return p
}

func (p *images) Live() bool   { return false }
func (p *images) FPS() float64 { return p.uri.FPS }

// Next implements Source. A file that is no image is an error that names it.
func (p *images) Next(lend capture.Lender) (capture.Frame, error) {
	if err := p.ctx.Err(); err != nil {
		return capture.Frame{}, err
	}
	if p.next >= len(p.files) {
		return capture.Frame{}, io.EOF
	}
	u := p.uri
	u.Address = p.files[p.next]
	seq := uint64(p.next)
	p.next++
	if err := p.img.load(u.Address); err != nil {
		return capture.Frame{}, u.NewError("read", capture.ErrImage, "", "", cause(err))
	}
	if cutJPEG(p.img.encoded) {
		return capture.Frame{}, u.NewError("read", capture.ErrImage, errPartial.Error(), "copy it again", nil)
	}
	captured, now := capture.Monotonic(), time.Now()
	f, err := p.img.decode(lend)
	if err != nil {
		return capture.Frame{}, named(u, err)
	}
	f.Seq, f.Captured, f.Time = seq, captured, now
	return f, nil
}

// Close implements Source.
func (p *images) Close() error {
	p.next = len(p.files)
	p.img.decoder.forget()
	return nil
}

// image is an encoded image in memory that is used again for the next one.
type img struct {
	large   bool // may have maxLargeImage bytes
	encoded []byte
	decoder decoder
}

// load reads a file.
func (p *img) load(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	return p.fill(file, info.Size())
}

// fill reads size bytes, into memory that grows with what arrives, whatever was announced.
func (p *img) fill(r io.Reader, size int64) error {
	switch {
	case size > maxLargeImage:
		return errFileTooLarge
	case size > maxImage && !p.large:
		return errTooLarge
	}
	p.encoded = p.encoded[:0]
	for need := int(size); len(p.encoded) < need; {
		if len(p.encoded) == cap(p.encoded) {
			p.encoded = slices.Grow(p.encoded, min(need-len(p.encoded), max(len(p.encoded), 64<<10)))
		}
		begin := len(p.encoded)
		p.encoded = p.encoded[:min(need, cap(p.encoded))]
		if n, err := io.ReadFull(r, p.encoded[begin:]); err != nil {
			p.encoded = p.encoded[:begin+n]
			return truncated(err)
		}
	}
	return nil
}

// decode looks at the header before there is memory for the image. What is wrong with the image is an *Error of kind ErrImage.
func (p *img) decode(lend capture.Lender) (capture.Frame, error) {
	if p.decoder.into == nil {
		p.decoder.into, p.decoder.img = p.decodeInto, colourImage
	}
	told, err := encodedSize(p.encoded)
	if err == nil {
		if err = p.decoder.limit.check(told, engine.BGR); err != nil {
			return capture.Frame{}, err
		}
		var f capture.Frame
		if f, err = p.decoder.decode(lend); !errors.Is(err, errNoImage) {
			return f, err
		}
		err = errNotImage
	}
	return capture.Frame{}, &capture.Error{Op: "read", Kind: capture.ErrImage, Err: err}
}

// stale is what the first bytes of a matrix hold before decoding. OpenCV returns no result, and leaves the matrix as it was when it does
// not understand the image's header: the last image of that buffer would pass as a new one.
var stale = [16]byte{0xA5, 0x5A, 0xC3, 0x3C, 0x96, 0x69, 0xF0, 0x0F, 0x5A, 0xA5, 0x3C, 0xC3, 0x69, 0x96, 0x0F, 0xF0}

func (p *img) decodeInto(mat *gocv.Mat) bool {
	before, err := mat.DataPtrUint8()
	marked := err == nil && len(before) >= len(stale)
	if marked {
		copy(before, stale[:])
	}
	if err := gocv.IMDecodeIntoMat(p.encoded, gocv.IMReadColor, mat); err != nil || mat.Empty() {
		return false
	}
	after, err := mat.DataPtrUint8()
	return err == nil && len(after) > 0 && !(marked && len(after) >= len(stale) && [16]byte(after[:16]) == stale)
}

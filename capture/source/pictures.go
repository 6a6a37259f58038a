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

// maxPicture bounds the encoded size in bytes of one picture, and maxLargePicture that of a file where more pixels are allowed than cameras
// have: OpenCV counts a picture's bytes in an int.
const (
	maxPicture      = 64 << 20
	maxLargePicture = 1<<31 - 1
)

var (
	errTooLarge     = errors.New("more than 64 MiB")
	errFileTooLarge = errors.New("more than 2 GiB")
)

// pictures reads picture files one after the other.
type pictures struct {
	ctx   context.Context
	uri   capture.URI
	files []string

	next    int
	picture picture
}

// openDirectory lists a directory's pictures in the order of their names.
func openDirectory(ctx context.Context, u capture.URI, options settings) (capture.Source, error) {
	entries, err := os.ReadDir(u.Address)
	if err != nil {
		return nil, u.Fail("open", capture.ErrUnavailable, "", "", cause(err))
	}
	var files []string
	for _, entry := range entries {
		if !entry.IsDir() && Picture(entry.Name()) && !strings.HasPrefix(entry.Name(), ".") {
			files = append(files, filepath.Join(u.Address, entry.Name()))
		}
	}
	if len(files) == 0 {
		return nil, u.Fail("open", capture.ErrNotFound, "no picture in this directory", "known: "+strings.Join(pictureSuffixes, " "), nil)
	}
	return newPictures(ctx, u, files, options), nil
}

func newPictures(ctx context.Context, u capture.URI, files []string, options settings) *pictures {
	p := &pictures{ctx: ctx, uri: u, files: files}
	p.picture.decoder.limit = sizeLimit(options.MaxPixels)
	p.picture.large = options.MaxPixels > capture.DefaultMaxPixels
	return p
}

func (p *pictures) Live() bool   { return false }
func (p *pictures) FPS() float64 { return p.uri.FPS }

// Next implements Source. A file that is no picture is an error that names it.
func (p *pictures) Next(lend capture.Lender) (capture.Frame, error) {
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
	if err := p.picture.load(u.Address); err != nil {
		return capture.Frame{}, u.Fail("read", capture.ErrPicture, "", "", cause(err))
	}
	if cutJPEG(p.picture.encoded) {
		return capture.Frame{}, u.Fail("read", capture.ErrPicture, errPartial.Error(), "copy it again", nil)
	}
	captured, now := capture.Monotonic(), time.Now()
	f, err := p.picture.decode(lend)
	if err != nil {
		return capture.Frame{}, named(u, err)
	}
	f.Seq, f.Captured, f.Time = seq, captured, now
	return f, nil
}

// Close implements Source.
func (p *pictures) Close() error {
	p.next = len(p.files)
	p.picture.decoder.forget()
	return nil
}

// picture is an encoded picture in memory that is used again for the next one.
type picture struct {
	large   bool // may have maxLargePicture bytes
	encoded []byte
	decoder decoder
}

// load reads a file.
func (p *picture) load(path string) error {
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
func (p *picture) fill(r io.Reader, size int64) error {
	switch {
	case size > maxLargePicture:
		return errFileTooLarge
	case size > maxPicture && !p.large:
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

// decode looks at the header before there is memory for the picture. What is wrong with the picture is an *Error of kind ErrPicture.
func (p *picture) decode(lend capture.Lender) (capture.Frame, error) {
	if p.decoder.into == nil {
		p.decoder.into, p.decoder.picture = p.decodeInto, colourPicture
	}
	told, err := encodedSize(p.encoded)
	if err == nil {
		if err = p.decoder.limit.check(told, engine.BGR); err != nil {
			return capture.Frame{}, err
		}
		var f capture.Frame
		if f, err = p.decoder.decode(lend); !errors.Is(err, errNoPicture) {
			return f, err
		}
		err = errNotPicture
	}
	return capture.Frame{}, &capture.Error{Op: "read", Kind: capture.ErrPicture, Err: err}
}

// stale is what the first bytes of a matrix hold before decoding. OpenCV returns no result, and leaves the matrix as it was when it does
// not understand the picture's header: the last picture of that buffer would pass as a new one.
var stale = [16]byte{0xA5, 0x5A, 0xC3, 0x3C, 0x96, 0x69, 0xF0, 0x0F, 0x5A, 0xA5, 0x3C, 0xC3, 0x69, 0x96, 0x0F, 0xF0}

func (p *picture) decodeInto(mat *gocv.Mat) bool {
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

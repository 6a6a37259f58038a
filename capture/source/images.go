package source

import (
	"bytes"
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

// maxImageBytes bounds the encoded size of an image in bytes, and maxLargeImageBytes that of a file if MaxPixels was raised; OpenCV counts
// bytes in an int.
const (
	maxImageBytes      = 64 << 20
	maxLargeImageBytes = 1<<31 - 1
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

	next  int
	image encodedImage
}

// openDirectory opens a directory's images in the order of their names.
func openDirectory(ctx context.Context, u capture.URI, options settings) (capture.Source, error) {
	entries, err := os.ReadDir(u.Address)
	if err != nil {
		return nil, u.NewError("open", capture.ErrUnavailable, "", "", withoutPath(err))
	}
	var files []string
	for _, entry := range entries {
		if !entry.IsDir() && IsImage(entry.Name()) && !strings.HasPrefix(entry.Name(), ".") {
			files = append(files, filepath.Join(u.Address, entry.Name()))
		}
	}
	if len(files) == 0 {
		none := "no image in this directory"
		if unread := Unread(u.Address, false); unread != "" {
			none += " of a format that is read, " + unread + " of others"
		}
		return nil, u.NewError("open", capture.ErrNotFound, none, "known: "+strings.Join(imageSuffixes, " "), nil)
	}
	return newImages(ctx, u, files, options), nil
}

func newImages(ctx context.Context, u capture.URI, files []string, options settings) *images {
	p := &images{ctx: ctx, uri: u, files: files}
	p.image.decoder.limit = sizeLimit(options.MaxPixels)
	p.image.large = options.MaxPixels > capture.DefaultMaxPixels
	return p
}

func (p *images) Live() bool   { return false }
func (p *images) FPS() float64 { return p.uri.FPS }

// Next implements capture.Source. A file that is not an image is an error with its name.
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
	if err := p.image.load(u.Address); err != nil {
		return capture.Frame{}, u.NewError("read", capture.ErrImage, "", "", withoutPath(err))
	}
	captured, now := capture.Monotonic(), time.Now()
	f, err := p.image.decode(lend)
	if err != nil {
		return capture.Frame{}, withURI(u, err)
	}
	f.Seq, f.Captured, f.Time = seq, captured, now
	return f, nil
}

// Close implements capture.Source.
func (p *images) Close() error {
	p.next = len(p.files)
	p.image.decoder.closeMats()
	return nil
}

// encodedImage is an encoded image in reused memory.
type encodedImage struct {
	large   bool // up to maxLargeImageBytes
	data    []byte
	decoder decoder
}

// newImageRing returns a ring for the images of a camera that compresses each, nil without capture.Options.KeepUnits.
func newImageRing(keep time.Duration) *capture.Ring {
	if keep <= 0 {
		return nil
	}
	return &capture.Ring{Keep: keep, Bytes: capture.KeptRingBytes}
}

// keep adds the image to a ring, which may be nil. The time of arrival is all that is known of its time.
func (p *encodedImage) keep(ring *capture.Ring, captured int64) {
	if ring != nil {
		data := bytes.Clone(p.data)
		ring.Put(capture.Unit{Codec: capture.MJPEG, Data: data, Key: true, PTS: time.Duration(captured), Received: captured})
	}
}

// load reads a file.
func (p *encodedImage) load(path string) error {
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

// fill reads size bytes into memory that grows with the data received, not with the announced size.
func (p *encodedImage) fill(r io.Reader, size int64) error {
	switch {
	case size > maxLargeImageBytes:
		return errFileTooLarge
	case size > maxImageBytes && !p.large:
		return errTooLarge
	}
	p.data = p.data[:0]
	for need := int(size); len(p.data) < need; {
		if len(p.data) == cap(p.data) {
			p.data = slices.Grow(p.data, min(need-len(p.data), max(len(p.data), 64<<10)))
		}
		begin := len(p.data)
		p.data = p.data[:min(need, cap(p.data))]
		if n, err := io.ReadFull(r, p.data[begin:]); err != nil {
			p.data = p.data[:begin+n]
			return truncated(err)
		}
	}
	return nil
}

// decode checks the header before memory for the image is allocated. The errors of invalid images are *Error of kind ErrImage.
func (p *encodedImage) decode(lend capture.Lender) (capture.Frame, error) {
	if p.decoder.decode == nil {
		p.decoder.decode, p.decoder.interpret = p.decodeInto, interpretColour
	}
	declared, err := encodedSize(p.data)
	if err == nil {
		err = p.decoder.limit.check(declared, engine.BGR)
		if err != nil {
			return capture.Frame{}, err
		}
		var f capture.Frame
		f, err = p.decoder.read(lend)
		if !errors.Is(err, errNoImage) {
			f.Damaged = err == nil && truncatedJPEG(p.data)
			return f, err
		}
		err = errNotImage
	}
	return capture.Frame{}, &capture.Error{Op: "read", Kind: capture.ErrImage, Err: err}
}

// decodeSentinel fills the start of a matrix before decoding. OpenCV reports no error and leaves the matrix unchanged if it does not
// understand an image's header: the previous image in that buffer would pass as a new one.
var decodeSentinel = [16]byte{0xA5, 0x5A, 0xC3, 0x3C, 0x96, 0x69, 0xF0, 0x0F, 0x5A, 0xA5, 0x3C, 0xC3, 0x69, 0x96, 0x0F, 0xF0}

func (p *encodedImage) decodeInto(mat *gocv.Mat) bool {
	if orientation := webpOrientation(p.data); orientation != upright {
		stored, err := gocv.IMDecode(p.data, gocv.IMReadColor|gocv.IMReadIgnoreOrientation)
		if err != nil {
			return false
		}
		defer stored.Close()
		return !stored.Empty() && orient(stored, mat, orientation) == nil
	}
	before, err := mat.DataPtrUint8()
	marked := err == nil && len(before) >= len(decodeSentinel)
	if marked {
		copy(before, decodeSentinel[:])
	}
	if err := gocv.IMDecodeIntoMat(p.data, gocv.IMReadColor, mat); err != nil || mat.Empty() {
		return false
	}
	after, err := mat.DataPtrUint8()
	return err == nil && len(after) > 0 && !(marked && len(after) >= len(decodeSentinel) && [16]byte(after[:16]) == decodeSentinel)
}

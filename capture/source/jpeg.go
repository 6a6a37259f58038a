package source

import (
	"errors"
	"io"

	"github.com/edge-infer/edge-infer/capture"
)

// jpegDecoder is a capture.Decoder for Motion JPEG on the CPU. Frames are BGR.
type jpegDecoder struct {
	image   encodedImage
	times   capture.UnitTimes
	number  uint64 // of the unit in image
	waiting bool   // image has not been decoded
	ended   bool
	seq     uint64
}

var errJPEGClosed = errors.New("the decoder is closed")

// Submit implements capture.Decoder.
func (d *jpegDecoder) Submit(unit *capture.Unit) error {
	if d.ended {
		return errJPEGClosed
	}
	if unit.Codec != capture.MJPEG {
		return &capture.Error{Op: "decode", Kind: capture.ErrFormat, Message: "the video changed from MJPEG to " + unit.Codec.String()}
	}
	d.image.data = append(d.image.data[:0], unit.Data...)
	d.number, d.waiting = d.times.Add(unit), true
	return nil
}

// Next implements capture.Decoder.
func (d *jpegDecoder) Next(lend capture.Lender) (capture.Frame, bool, error) {
	if !d.waiting {
		if d.ended {
			return capture.Frame{}, false, io.EOF
		}
		return capture.Frame{}, false, nil
	}
	d.waiting = false
	seq := d.seq
	d.seq++
	f, err := d.image.decode(lend)
	if err != nil {
		d.times.Take(d.number, nil)
		return capture.Frame{}, true, err
	}
	f.Seq = seq
	d.times.Take(d.number, &f)
	return f, true, nil
}

// End implements capture.Decoder.
func (d *jpegDecoder) End() error {
	d.ended = true
	return nil
}

// Lost implements capture.Decoder.
func (d *jpegDecoder) Lost() uint64 { return d.times.Lost() }

// Close implements capture.Decoder.
func (d *jpegDecoder) Close() error {
	d.image.decoder.closeMats()
	d.ended, d.waiting = true, false
	return nil
}

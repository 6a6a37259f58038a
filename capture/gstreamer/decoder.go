package gstreamer

// #include <stdlib.h>
//
// #include "ei_gstreamer.h"
import "C"

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/edge-infer/edge-infer/capture"
)

// DecoderOptions configures OpenDecoder.
type DecoderOptions struct {
	Codec   capture.Codec
	Element string // the decoder, one of Decoders
	// LowLatency makes decoders that support it return each image at once. Video with B-frames is then output in the wrong order.
	LowLatency bool
	// Threads is the number of threads of a decoder on the CPU, 0 for one for each CPU. More than one return images later, by as many images.
	Threads   int
	MaxPixels int

	nvmm bool // images stay in the decoder's memory
}

// parsers are the elements that GStreamer's decoders want in front of them, and caps what they get.
var parsers = map[capture.Codec]struct{ element, caps string }{
	capture.H264: {"h264parse", "video/x-h264,stream-format=byte-stream,alignment=au"},
	capture.H265: {"h265parse", "video/x-h265,stream-format=byte-stream,alignment=au"},
}

// nvidia is the decoder element of NVIDIA's boards.
const nvidia = "nvv4l2decoder"

// SoftwareDecoder returns the element that decodes a codec on the CPU, "" if there is none.
func SoftwareDecoder(codec capture.Codec) string {
	return map[capture.Codec]string{capture.H264: "avdec_h264", capture.H265: "avdec_h265"}[codec]
}

// HardwareDecoders returns the elements that decode a codec with hardware into system memory, the preferred one first.
func HardwareDecoders(codec capture.Codec) []string {
	return map[capture.Codec][]string{
		capture.H264: {nvidia, "v4l2h264dec", "v4l2slh264dec", "vah264dec", "vaapih264dec"},
		capture.H265: {nvidia, "v4l2h265dec", "v4l2slh265dec", "vah265dec", "vaapih265dec"},
	}[codec]
}

// elementOptions are properties that elements may have, depending on their version.
var elementOptions = []struct {
	element, property, value string
	lowLatency               bool // only wanted then
}{
	{nvidia, "enable-max-performance", "true", false}, // its clocks do not follow the load, which costs time; not in JetPack 7
	{nvidia, "disable-dpb", "true", true},
	{"vah264dec", "compliance", "low-latency", true},
	{"v4l2slh264dec", "compliance", "low-latency", true},
	{"nvvidconv", "bl-output", "false", false}, // rows instead of tiles
	{"nvvidconv", "output-buffers", "8", false},
	{"videoconvert", "chroma-mode", "none", false}, // 4:2:0 stays as it is
	{"videoconvert", "dither", "none", false},
}

// HasElement reports whether GStreamer has an element. It loads GStreamer.
func HasElement(name string) bool { return hasProperty(name, "") }

func hasProperty(element, property string) bool {
	if Available() != nil {
		return false
	}
	name := C.CString(element)
	defer C.free(unsafe.Pointer(name))
	var wanted *C.char
	if property != "" {
		wanted = C.CString(property)
		defer C.free(unsafe.Pointer(wanted))
	}
	return C.ei_gst_has_element(name, wanted) != 0
}

// withOptions returns an element with the options that it has.
func (o *DecoderOptions) withOptions(element string) string {
	text := element
	for _, option := range elementOptions {
		if option.element == element && (o.LowLatency || !option.lowLatency) && hasProperty(element, option.property) {
			text += " " + option.property + "=" + option.value
		}
	}
	return text
}

// Decoder is a capture.BackgroundDecoder. Frames are images in host memory, NV12 for video with 4:2:0 colours, or those of OpenNVMMDecoder.
type Decoder struct {
	codec    capture.Codec
	pipeline *Pipeline
	times    capture.UnitTimes
	ended    atomic.Bool

	nvmm  *nvmm // nil if images are in host memory
	close sync.Once
}

var _ capture.BackgroundDecoder = (*Decoder)(nil)

// timeBase is added to the time of a unit, which may be negative.
const timeBase = 24 * time.Hour

// OpenDecoder starts a decoder. It ends with the context. Errors are *capture.Error that is ErrUnavailable: an element is not installed, or
// reports that its hardware is missing.
func OpenDecoder(ctx context.Context, options DecoderOptions) (*Decoder, error) {
	if err := Available(); err != nil {
		return nil, err
	}
	parser, known := parsers[options.Codec]
	if !known {
		return nil, unavailable(options.Codec.String() + " is not decoded by GStreamer")
	}
	for _, element := range []string{parser.element, options.Element} {
		if !HasElement(element) {
			return nil, missing(element)
		}
	}
	description := "appsrc format=time is-live=true caps=" + parser.caps + " ! " + parser.element + " ! " + options.decoder() +
		" ! appsink max-buffers=2 sync=false"
	if options.nvmm {
		description += ` caps="video/x-raw(memory:NVMM),format=NV12"`
	}
	pipeline, err := Open(ctx, description, Options{MaxPixels: options.MaxPixels})
	if err != nil {
		return nil, err
	}
	return &Decoder{codec: options.Codec, pipeline: pipeline}, nil
}

// decoder describes the decoder and what makes its images readable.
func (o *DecoderOptions) decoder() string {
	text := o.withOptions(o.Element)
	switch o.Element {
	case nvidia:
		text += " ! " + o.withOptions("nvvidconv")
		if !o.nvmm {
			text += " ! video/x-raw,format=NV12"
		}
		return text
	case SoftwareDecoder(o.Codec):
		text += fmt.Sprintf(" max-threads=%d", o.Threads)
	}
	return text + " ! " + o.withOptions("videoconvert")
}

func unavailable(message string) error {
	return &capture.Error{Op: "open", Kind: capture.ErrUnavailable, Message: message}
}

// Submit implements capture.Decoder.
func (d *Decoder) Submit(unit *capture.Unit) error {
	if unit.Codec != d.codec {
		message := "the video changed from " + d.codec.String() + " to " + unit.Codec.String()
		return &capture.Error{Op: "decode", Kind: capture.ErrFormat, Message: message}
	}
	return d.pipeline.push(unit.Data, max(0, unit.PTS+timeBase), int64(d.times.Add(unit)))
}

// Await implements capture.BackgroundDecoder.
func (d *Decoder) Await(limit time.Duration) bool {
	err := d.pipeline.await(limit)
	return !errors.Is(err, capture.ErrStalled)
}

// Next implements capture.Decoder.
func (d *Decoder) Next(lend capture.Lender) (capture.Frame, bool, error) {
	err := d.pipeline.await(0)
	switch {
	case err == nil:
		return d.take(lend)
	case errors.Is(err, capture.ErrStalled):
		return capture.Frame{}, false, nil
	case d.ended.Load(): // some parsers complain about the end
		d.times.End()
		return capture.Frame{}, false, io.EOF
	}
	return capture.Frame{}, false, err
}

// take returns the image that waits.
func (d *Decoder) take(lend capture.Lender) (capture.Frame, bool, error) {
	number, known := d.unit()
	var f capture.Frame
	var err error
	if d.nvmm != nil {
		f, err = d.pipeline.nextSurface(lend, d.nvmm)
	} else {
		f, err = d.pipeline.Next(lend, 0)
	}
	if err != nil {
		if known {
			d.times.Take(number, nil)
		}
		return capture.Frame{}, true, err
	}
	f.Position, f.Time = 0, time.Time{}
	if known {
		d.times.Take(number, &f)
	}
	return f, true, nil
}

// unit returns the number of the unit of the image that waits, by its time if an element has not passed it on.
func (d *Decoder) unit() (number uint64, known bool) {
	image := &d.pipeline.image
	if image.number >= 0 {
		return uint64(image.number), true
	}
	return d.times.Find(time.Duration(image.position) - timeBase)
}

// End implements capture.Decoder.
func (d *Decoder) End() error {
	d.ended.Store(true)
	return d.pipeline.PushEnd()
}

// Lost implements capture.Decoder.
func (d *Decoder) Lost() uint64 { return d.times.Lost() }

// Close implements capture.Decoder. It waits for the decoder, which may hang in a driver.
func (d *Decoder) Close() error {
	err := d.pipeline.Close()
	d.close.Do(func() {
		if d.nvmm != nil {
			d.nvmm.Release()
		}
	})
	return err
}

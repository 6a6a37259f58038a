package source

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gocv.io/x/gocv"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/capture/gstreamer"
	"github.com/edge-infer/edge-infer/capture/nvdec"
)

// decoding is a way to decode a stream.
type decoding struct {
	name   string // as in #decoder=; several ways may have the same
	label  string // in status
	ifSlow bool   // only instead of a way that is too slow
	open   func(s *stream) (capture.Source, error)
}

// softwareThreads is the number of threads of a decoder on the CPU for which one is too slow. Images come later by as many, less one.
const softwareThreads = 4

// decodings returns the ways to decode the camera's video that its address admits, the best one first.
func (s *stream) decodings() []decoding {
	codec := s.camera.Codec()
	software := softwareDecodings(codec)
	relay := decoding{name: "software", label: "software", open: (*stream).openRelay}
	switch s.options.backend {
	case byFFmpeg:
		return []decoding{relay}
	case byGStreamer:
		return software
	}
	ways := []decoding{
		{name: "nvdec", label: fmt.Sprintf("NVDEC of GPU %d", s.options.GPU), open: (*stream).openNVDEC},
		{name: "nvmm", label: "NVMM", open: (*stream).openNVMM},
	}
	ways = slices.Concat(ways, hardwareDecodings(codec), software, []decoding{relay})
	return slices.DeleteFunc(ways, func(way decoding) bool { return s.uri.Decoder != "" && way.name != s.uri.Decoder })
}

// hardwareDecodings are the ways with hardware and GStreamer.
func hardwareDecodings(codec capture.Codec) []decoding {
	var ways []decoding
	for _, element := range gstreamer.HardwareDecoders(codec) {
		if gstreamer.HasElement(element) {
			ways = append(ways, decoding{
				name: "hardware", label: element + " of GStreamer", open: withGStreamer(gstreamer.DecoderOptions{Element: element}),
			})
		}
	}
	if len(ways) > 0 {
		return ways
	}
	return []decoding{{name: "hardware", open: func(*stream) (capture.Source, error) {
		if err := gstreamer.Available(); err != nil {
			return nil, err
		}
		return nil, unavailable("GStreamer has no hardware decoder for " + codec.String())
	}}}
}

// softwareDecodings are the ways on the CPU without the relay.
func softwareDecodings(codec capture.Codec) []decoding {
	if codec == capture.MJPEG {
		return []decoding{{name: "software", label: "OpenCV", open: func(s *stream) (capture.Source, error) {
			d := &jpegDecoder{}
			d.image.decoder.limit = sizeLimit(s.options.MaxPixels)
			return newUnits(s, d, false), nil
		}}}
	}
	element := gstreamer.SoftwareDecoder(codec)
	if element == "" {
		return nil
	}
	many := gstreamer.DecoderOptions{Element: element, Threads: softwareThreads}
	return []decoding{
		{name: "software", label: element + " of GStreamer", open: withGStreamer(gstreamer.DecoderOptions{Element: element, Threads: 1})},
		{
			name: "software", label: fmt.Sprintf("%s of GStreamer with %d threads", element, softwareThreads), ifSlow: true,
			open: withGStreamer(many),
		},
	}
}

// unavailable is the error of a decoder that cannot be opened.
func unavailable(message string) error {
	return &capture.Error{Op: "open", Kind: capture.ErrUnavailable, Message: message}
}

func (s *stream) openNVDEC() (capture.Source, error) {
	d, err := nvdec.Open(nvdec.Options{
		Codec: s.camera.Codec(), GPU: s.options.GPU, MaxPixels: s.options.MaxPixels, Copied: s.options.CopiedBytes,
	})
	if err != nil {
		return nil, err
	}
	return newUnits(s, d, false), nil
}

func (s *stream) openNVMM() (capture.Source, error) {
	d, err := gstreamer.OpenNVMMDecoder(s.ctx, gstreamer.NVMMOptions{
		Codec: s.camera.Codec(), LowLatency: s.uri.LowLatency, MaxPixels: s.options.MaxPixels, GPU: s.options.GPU, Copied: s.options.CopiedBytes,
	})
	if err != nil {
		return nil, err
	}
	return newUnits(s, d, false), nil
}

// withGStreamer opens a decoder of GStreamer.
func withGStreamer(options gstreamer.DecoderOptions) func(s *stream) (capture.Source, error) {
	return func(s *stream) (capture.Source, error) {
		own := options
		own.Codec, own.MaxPixels, own.LowLatency = s.camera.Codec(), s.options.MaxPixels, s.uri.LowLatency
		d, err := gstreamer.OpenDecoder(s.ctx, own)
		if err != nil {
			return nil, err
		}
		return newUnits(s, d, own.Threads == 1), nil
	}
}

// openRelay serves the stream to OpenCV, or to GStreamer's RTSP client, on loopback.
func (s *stream) openRelay() (capture.Source, error) {
	relay, err := s.camera.Serve()
	if err != nil {
		return nil, err
	}
	opened, library, err := decodeURL(s.ctx, s.uri, relay.Address(), s.options)
	if err != nil {
		if ended := s.camera.Err(); ended != nil {
			return nil, s.uri.NewError("open", capture.ErrUnavailable, "the camera ended the stream", "", ended)
		}
		return nil, err
	}
	s.decoder = library
	return opened, nil
}

// openDecoder opens the first decoder that works of those that have not been tried. failed is why the last one is replaced, or nil.
func (s *stream) openDecoder(failed error) (err error) {
	slow := errors.Is(failed, errSlow)
	err = failed
	for len(s.ways) > 0 {
		way := s.ways[0]
		s.ways = s.ways[1:]
		if way.ifSlow && !slow {
			continue
		}
		var opened capture.Source
		s.decoder = way.label
		opened, err = way.open(s)
		if err == nil {
			s.Source = opened
			return nil
		}
		if s.camera.Err() != nil {
			return err
		}
		s.reject(err)
	}
	var why *capture.Error
	if errors.As(err, &why) && s.uri.Decoder != "" && s.uri.Decoder != "software" {
		return s.uri.NewError(why.Op, capture.ErrUnavailable, why.Message, "choose another decoder, or none", why.Err)
	}
	return withURI(s.uri, err)
}

// reject keeps why a decoder is not used.
func (s *stream) reject(err error) {
	if text := reasonOf(err); !slices.Contains(s.reasons, text) {
		s.reasons = append(s.reasons, text)
	}
}

// reasonOf returns an error without its operation.
func reasonOf(err error) string {
	var why *capture.Error
	if errors.As(err, &why) {
		return why.Reason()
	}
	return err.Error()
}

// fail keeps why the decoder in use is replaced.
func (s *stream) fail(err *decoderError) {
	element, _, _ := strings.Cut(s.decoder, " ")
	if text := reasonOf(err); !strings.Contains(text, element) {
		s.reject(errors.New(element + ": " + text))
		return
	}
	s.reject(err)
}

// decodeURL uses FFmpeg, or GStreamer if OpenCV has no FFmpeg. It also returns the library's name.
func decodeURL(ctx context.Context, u capture.URI, address string, options settings) (opened capture.Source, library string, err error) {
	jetson := FindPlugin(pluginDecoder) != "" && gstreamer.Available() == nil
	if options.backend == byGStreamer || options.backend == "" && (jetson || !gocv.VideoRegistry.HasBackend(gocv.VideoCaptureFFmpeg)) {
		opened, err = openGStreamer(ctx, u, rtspPipeline(address, options.EveryFrame, jetson), options)
		return opened, "GStreamer", err
	}
	opened, err = openVideo(u, address, gocv.VideoCaptureFFmpeg, options)
	return opened, "FFmpeg of OpenCV", err
}

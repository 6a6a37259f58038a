package rtsp

import (
	"slices"

	"github.com/bluenviron/gortsplib/v5/pkg/description"
	"github.com/bluenviron/gortsplib/v5/pkg/format"
	"github.com/bluenviron/gortsplib/v5/pkg/format/rtpmjpeg"
	"github.com/bluenviron/mediacommon/v2/pkg/codecs/h264"
	"github.com/bluenviron/mediacommon/v2/pkg/codecs/h265"
	"github.com/pion/rtp"

	"github.com/edge-infer/edge-infer/capture"
)

// depacketizer puts the RTP packets of a video together.
type depacketizer interface {
	// add returns an access unit if the packet completes one.
	add(packet *rtp.Packet) (capture.Unit, bool)
}

// Limits of what a camera makes this program keep: the library bounds the bytes of an access unit to 8 MiB, but not the number of empty
// fragments, nor what is kept besides.
const (
	maxPackets      = 1 << 14  // of an access unit, twice as many as 8 MiB need
	maxParameterSet = 64 << 10 // bytes
)

// newDepacketizer returns nil for a codec that it does not know.
func newDepacketizer(video *description.Media) (capture.Codec, depacketizer) {
	switch f := video.Formats[0].(type) {
	case *format.H264:
		n := &nalUnits{kind: h264Kind, sets: make([][]byte, 2)}
		n.restart = restarting(f.CreateDecoder)
		n.sets[0], n.sets[1] = f.SPS, f.PPS
		return n.start(capture.H264)
	case *format.H265:
		n := &nalUnits{kind: h265Kind, sets: make([][]byte, 3)}
		n.restart = restarting(f.CreateDecoder)
		n.sets[0], n.sets[1], n.sets[2] = f.VPS, f.SPS, f.PPS
		return n.start(capture.H265)
	case *format.MJPEG:
		return capture.MJPEG, &jpegs{}
	}
	return capture.UnknownCodec, nil
}

// nalDecoder returns the NAL units of an access unit if the packet completes one.
type nalDecoder func(packet *rtp.Packet) ([][]byte, error)

// restarting returns a function that makes a decoder of the library.
func restarting[D interface {
	Decode(packet *rtp.Packet) ([][]byte, error)
}](create func() (D, error)) func() (nalDecoder, error) {
	return func() (nalDecoder, error) {
		decoder, err := create()
		if err != nil {
			return nil, err
		}
		return decoder.Decode, nil
	}
}

// nalUnits puts access units of H.264 or H.265 together.
type nalUnits struct {
	restart func() (nalDecoder, error) // returns a new decoder
	decode  nalDecoder
	packets int // since the last access unit
	kind    func(unit []byte) nalKind
	sets    [][]byte // the newest parameter set of each kind, in the order in which they precede a key frame; nil if unknown
}

// nalKind is what a NAL unit is: the index of a parameter set, or one of the others.
type nalKind int

const (
	nalOther     nalKind = -1
	nalKey       nalKind = -2 // part of an image at which decoding can begin
	nalDelimiter nalKind = -3 // the first of an access unit
)

func h264Kind(unit []byte) nalKind {
	switch h264.NALUType(unit[0] & 0x1f) {
	case h264.NALUTypeSPS:
		return 0
	case h264.NALUTypePPS:
		return 1
	case h264.NALUTypeIDR:
		return nalKey
	case h264.NALUTypeAccessUnitDelimiter:
		return nalDelimiter
	}
	return nalOther
}

func h265Kind(unit []byte) nalKind {
	switch t := h265.NALUType(unit[0] >> 1 & 0x3f); {
	case t == h265.NALUType_VPS_NUT:
		return 0
	case t == h265.NALUType_SPS_NUT:
		return 1
	case t == h265.NALUType_PPS_NUT:
		return 2
	case t == h265.NALUType_AUD_NUT:
		return nalDelimiter
	case t >= h265.NALUType_BLA_W_LP && t <= h265.NALUType_RSV_IRAP_VCL23:
		return nalKey
	}
	return nalOther
}

// start makes the decoder. The codec is unknown if its RTP form is one that the library does not support.
func (n *nalUnits) start(codec capture.Codec) (capture.Codec, depacketizer) {
	decode, err := n.restart()
	if err != nil {
		return capture.UnknownCodec, nil
	}
	n.decode = decode
	return codec, n
}

// add implements depacketizer.
func (n *nalUnits) add(packet *rtp.Packet) (capture.Unit, bool) {
	units, err := n.units(packet)
	if err != nil { // more packets are needed, or some are missing
		return capture.Unit{}, false
	}
	return n.join(units)
}

// units returns the NAL units of an access unit. One of too many packets is dropped.
func (n *nalUnits) units(packet *rtp.Packet) ([][]byte, error) {
	n.packets++
	units, err := n.decode(packet)
	if err == nil {
		n.packets = 0
		return units, nil
	}
	if n.packets < maxPackets {
		return nil, err
	}
	n.packets = 0
	decode, failed := n.restart()
	if failed == nil { // it has not failed before either
		n.decode = decode
	}
	return nil, err
}

// join makes an access unit of NAL units, with the parameter sets in front of a key frame.
func (n *nalUnits) join(units [][]byte) (capture.Unit, bool) {
	size := 0
	key := false
	units = withoutEmpty(units)
	for _, unit := range units {
		size += len(startCode) + len(unit)
		kind := n.kind(unit)
		if kind >= 0 && len(unit) <= maxParameterSet { // a new parameter set, after which some cameras send a key frame without IDR
			n.sets[kind] = unit
		}
		key = key || kind == nalKey || kind >= 0 && len(units) > len(n.sets)
	}
	if size == 0 {
		return capture.Unit{}, false
	}
	var missing [][]byte
	if key {
		for kind, set := range n.sets {
			if set != nil && !slices.ContainsFunc(units, func(unit []byte) bool { return n.kind(unit) == nalKind(kind) }) {
				missing = append(missing, set)
				size += len(startCode) + len(set)
			}
		}
	}
	begin := 0
	if n.kind(units[0]) == nalDelimiter {
		begin = 1
	}
	data := make([]byte, 0, size)
	for _, list := range [][][]byte{units[:begin], missing, units[begin:]} {
		for _, unit := range list {
			data = append(append(data, startCode...), unit...)
		}
	}
	return capture.Unit{Data: data, Key: key}, true
}

// withoutEmpty removes NAL units without content.
func withoutEmpty(units [][]byte) [][]byte {
	return slices.DeleteFunc(units, func(unit []byte) bool { return len(unit) == 0 })
}

const startCode = "\x00\x00\x00\x01"

// jpegs puts JPEGs together.
type jpegs struct {
	decoder rtpmjpeg.Decoder
	packets int // since the last image
}

// add implements depacketizer.
func (j *jpegs) add(packet *rtp.Packet) (capture.Unit, bool) {
	data, err := j.decoder.Decode(packet)
	j.packets++
	if err == nil || j.packets >= maxPackets {
		j.packets = 0
	}
	if err != nil && j.packets == 0 {
		j.decoder = rtpmjpeg.Decoder{}
	}
	return capture.Unit{Data: data, Key: true}, err == nil && len(data) > 0
}

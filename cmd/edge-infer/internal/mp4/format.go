package mp4

import (
	"bytes"
	"errors"
	"fmt"
	"image/jpeg"
	"math/bits"
	"strings"

	"github.com/bluenviron/mediacommon/v2/pkg/codecs/h264"
	"github.com/bluenviron/mediacommon/v2/pkg/codecs/h265"
	"github.com/bluenviron/mediacommon/v2/pkg/formats/mp4/codecs"

	"github.com/edge-infer/edge-infer/capture"
)

// format is the description of a video at the start of its file.
type format struct {
	codec         capture.Codec
	name          string // see Video.Codec
	width, height int
	sets          [][]byte // parameter sets, in the order of the codec; nil for JPEG
	entry         codecs.Codec
}

// fits reports whether images of another format can go on in the same file. Cameras change parameter sets that mean the same size and
// profile, and some alternate between two; such sets are part of the images.
func (f *format) fits(other *format) bool {
	return f.codec == other.codec && f.name == other.name && f.width == other.width && f.height == other.height
}

// set returns the index of a NAL unit among the parameter sets of the codec, -1 if it is none.
func set(codec capture.Codec, nal []byte) int {
	if codec == capture.H264 {
		switch h264.NALUType(nal[0] & 0x1f) {
		case h264.NALUTypeSPS:
			return 0
		case h264.NALUTypePPS:
			return 1
		}
		return -1
	}
	switch h265.NALUType(nal[0] >> 1 & 0x3f) {
	case h265.NALUType_VPS_NUT:
		return 0
	case h265.NALUType_SPS_NUT:
		return 1
	case h265.NALUType_PPS_NUT:
		return 2
	}
	return -1
}

// delimiter reports whether a NAL unit only separates access units, which MP4 does itself.
func delimiter(codec capture.Codec, nal []byte) bool {
	if codec == capture.H264 {
		return h264.NALUType(nal[0]&0x1f) == h264.NALUTypeAccessUnitDelimiter
	}
	return h265.NALUType(nal[0]>>1&0x3f) == h265.NALUType_AUD_NUT
}

const startCode = "\x00\x00\x00\x01"

// splitNAL appends the NAL units of an access unit to units, without start codes and without empty ones. They are parts of data.
func splitNAL(units [][]byte, data []byte) [][]byte {
	data, _ = bytes.CutPrefix(data, []byte(startCode))
	for len(data) > 0 {
		unit, rest, _ := bytes.Cut(data, []byte(startCode))
		if len(unit) > 0 {
			units = append(units, unit)
		}
		data = rest
	}
	return units
}

// formatOf reads the format of a key frame. nals are its NAL units, nil for JPEG.
func formatOf(unit *capture.Unit, nals [][]byte) (*format, error) {
	if unit.Codec == capture.MJPEG {
		config, err := jpeg.DecodeConfig(bytes.NewReader(unit.Data))
		if err != nil {
			return nil, err
		}
		return &format{
			codec: capture.MJPEG, name: "mjpeg", width: config.Width, height: config.Height,
			entry: &codecs.MJPEG{Width: config.Width, Height: config.Height},
		}, nil
	}
	f := &format{codec: unit.Codec}
	switch unit.Codec {
	case capture.H264:
		f.sets = make([][]byte, 2)
	case capture.H265:
		f.sets = make([][]byte, 3)
	default:
		return nil, fmt.Errorf("%s cannot be recorded", unit.Codec)
	}
	for _, nal := range nals {
		if at := set(unit.Codec, nal); at >= 0 {
			f.sets[at] = nal
		}
	}
	for _, s := range f.sets {
		if s == nil {
			return nil, errors.New("the camera sends no parameter sets")
		}
	}
	if unit.Codec == capture.H264 {
		return f, f.readH264()
	}
	return f, f.readH265()
}

func (f *format) readH264() error {
	var sps h264.SPS
	if err := sps.Unmarshal(f.sets[0]); err != nil {
		return fmt.Errorf("invalid parameter sets: %w", err)
	}
	f.width, f.height = sps.Width(), sps.Height()
	f.name = fmt.Sprintf("avc1.%02x%02x%02x", f.sets[0][1], f.sets[0][2], f.sets[0][3])
	f.entry = &codecs.H264{SPS: f.sets[0], PPS: f.sets[1]}
	return nil
}

// readH265 names the codec as ISO/IEC 14496-15, annex E does.
func (f *format) readH265() error {
	var sps h265.SPS
	if err := sps.Unmarshal(f.sets[1]); err != nil {
		return fmt.Errorf("invalid parameter sets: %w", err)
	}
	raw := h264.EmulationPreventionRemove(f.sets[1])
	if len(raw) < 15 {
		return errors.New("invalid parameter sets")
	}
	f.width, f.height = sps.Width(), sps.Height()
	level := &sps.ProfileTierLevel
	space := []string{"", "A", "B", "C"}[level.GeneralProfileSpace&3]
	tier := []string{"L", "H"}[level.GeneralTierFlag&1]
	compatible := bits.Reverse32(uint32(raw[4])<<24 | uint32(raw[5])<<16 | uint32(raw[6])<<8 | uint32(raw[7]))
	var constraints strings.Builder
	for _, b := range bytes.TrimRight(raw[8:14], "\x00") {
		fmt.Fprintf(&constraints, ".%X", b)
	}
	f.name = fmt.Sprintf("hvc1.%s%d.%X.%s%d%s", space, level.GeneralProfileIdc, compatible, tier, level.GeneralLevelIdc, constraints.String())
	f.entry = &codecs.H265{VPS: f.sets[0], SPS: f.sets[1], PPS: f.sets[2]}
	return nil
}

package rtsptest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/bluenviron/gortsplib/v5/pkg/format"
	"github.com/bluenviron/gortsplib/v5/pkg/format/rtph264"
	"github.com/bluenviron/gortsplib/v5/pkg/format/rtph265"
	"github.com/bluenviron/gortsplib/v5/pkg/format/rtpmjpeg"
	"github.com/bluenviron/mediacommon/v2/pkg/codecs/h264"
	"github.com/bluenviron/mediacommon/v2/pkg/codecs/h265"
	"github.com/bluenviron/mediacommon/v2/pkg/formats/mpegts"
	"github.com/bluenviron/mediacommon/v2/pkg/formats/mpegts/codecs"
	"github.com/pion/rtp"
)

// ticksPerSecond is the clock of MPEG-TS and of all RTP formats used here.
const ticksPerSecond = 90000

const payloadType = 96 // of H.264 and H.265; JPEG has one of its own

// unit is an access unit. It is read-only: all paths share it.
type unit struct {
	parts    [][]byte // NAL units without start codes, or one JPEG image
	payloads [][]byte // of the RTP packets
	key      bool
	pts, dts int64 // in ticks, from the first unit's DTS
}

// video is a file in memory. It begins with a key frame. It is read-only once it is loaded, except for the encoder of its codec.
type video struct {
	codec   codec
	units   []unit
	keys    []int // indices of key frames
	sets    [][]byte
	length  int64 // from the first unit to the one that follows the last, in ticks
	reorder int64 // largest distance of PTS and DTS, in ticks

	encoding sync.Mutex // held while the codec encodes
}

// encode splits the parts of an access unit into RTP payloads. It may be called from any goroutine.
func (v *video) encode(parts [][]byte) (payloads [][]byte, err error) {
	v.encoding.Lock()
	defer v.encoding.Unlock()
	packets, err := v.codec.encode(parts)
	for _, p := range packets {
		payloads = append(payloads, p.Payload)
	}
	return payloads, err
}

// codec is what is specific to H.264, H.265 or JPEG.
type codec interface {
	// name is the name in messages.
	name() string
	// set returns the position of a part among the parameter sets, -1 if it is none; sets is their number.
	set(part []byte) int
	sets() int
	// key reports whether a decoder can begin with this access unit.
	key(parts [][]byte) bool
	// format describes the stream in the SDP; sets is nil, or has the parameter sets by position.
	format(sets [][]byte) format.Format
	// encode splits the parts into RTP packets, of which only the payloads are used. It is not safe for concurrent use.
	encode(parts [][]byte) ([]*rtp.Packet, error)
}

type h264Codec struct{ encoder rtph264.Encoder }

func (*h264Codec) name() string { return "H.264" }

func (*h264Codec) set(part []byte) int {
	return slices.Index([]h264.NALUType{h264.NALUTypeSPS, h264.NALUTypePPS}, h264.NALUType(part[0]&31))
}

func (*h264Codec) sets() int { return 2 }

func (*h264Codec) key(parts [][]byte) bool { return h264.IsRandomAccess(parts) }

func (*h264Codec) format(sets [][]byte) format.Format {
	f := &format.H264{PayloadTyp: payloadType, PacketizationMode: 1}
	if sets != nil {
		f.SPS = sets[0]
		f.PPS = sets[1]
	}
	return f
}

func (c *h264Codec) encode(parts [][]byte) ([]*rtp.Packet, error) { return c.encoder.Encode(parts) }

type h265Codec struct{ encoder rtph265.Encoder }

func (*h265Codec) name() string { return "H.265" }

func (*h265Codec) set(part []byte) int {
	return slices.Index([]h265.NALUType{h265.NALUType_VPS_NUT, h265.NALUType_SPS_NUT, h265.NALUType_PPS_NUT}, h265.NALUType(part[0]>>1&63))
}

func (*h265Codec) sets() int { return 3 }

func (*h265Codec) key(parts [][]byte) bool { return h265.IsRandomAccess(parts) }

func (*h265Codec) format(sets [][]byte) format.Format {
	f := &format.H265{PayloadTyp: payloadType}
	if sets != nil {
		f.VPS = sets[0]
		f.SPS = sets[1]
		f.PPS = sets[2]
	}
	return f
}

func (c *h265Codec) encode(parts [][]byte) ([]*rtp.Packet, error) { return c.encoder.Encode(parts) }

type jpegCodec struct{ encoder rtpmjpeg.Encoder }

func (*jpegCodec) name() string                  { return "JPEG" }
func (*jpegCodec) set([]byte) int                { return -1 }
func (*jpegCodec) sets() int                     { return 0 }
func (*jpegCodec) key([][]byte) bool             { return true }
func (*jpegCodec) format([][]byte) format.Format { return &format.MJPEG{} }

func (c *jpegCodec) encode(parts [][]byte) (packets []*rtp.Packet, err error) {
	defer func() { // the encoder panics at images that RFC 2435 cannot describe
		if reason := recover(); reason != nil {
			err = fmt.Errorf("image cannot be sent by RTP: %v", reason)
		}
	}()
	return c.encoder.Encode(parts[0])
}

// load reads a file: MPEG-TS, or JPEG images one after another if its name ends with .mjpeg, which are played at frameRate.
func load(path string, parameters Parameters, frameRate float64) (*video, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	v := &video{}
	if filepath.Ext(path) == ".mjpeg" {
		err = v.readImages(data, frameRate)
	} else {
		err = v.readTS(data)
	}
	if err == nil {
		err = v.prepare(parameters)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return v, nil
}

// readTS reads the access units of the first track with H.264 or H.265.
func (v *video) readTS(data []byte) error {
	r := &mpegts.Reader{R: bytes.NewReader(data)}
	if err := r.Initialize(); err != nil {
		return fmt.Errorf("not MPEG-TS: %w", err)
	}
	clock := &mpegts.TimeDecoder{}
	clock.Initialize()
	add := func(pts, dts int64, parts [][]byte) error {
		const wrap = 1 << 33
		delay := ((pts-dts)%wrap + wrap) % wrap
		at := clock.Decode(dts)
		u := unit{dts: at, pts: at + delay}
		for _, part := range parts {
			u.parts = append(u.parts, bytes.Clone(part)) // the reader uses its memory again
		}
		v.units = append(v.units, u)
		return nil
	}
	for _, track := range r.Tracks() {
		switch track.Codec.(type) {
		case *codecs.H264:
			c := &h264Codec{encoder: rtph264.Encoder{PayloadType: payloadType, PacketizationMode: 1}}
			if err := c.encoder.Init(); err != nil {
				return err
			}
			v.codec = c
			r.OnDataH264(track, add)
		case *codecs.H265:
			c := &h265Codec{encoder: rtph265.Encoder{PayloadType: payloadType}}
			if err := c.encoder.Init(); err != nil {
				return err
			}
			v.codec = c
			r.OnDataH265(track, add)
		}
		if v.codec != nil {
			break
		}
	}
	if v.codec == nil {
		return errors.New("no H.264 or H.265")
	}
	for {
		if err := r.Read(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// readImages reads JPEG images.
func (v *video) readImages(data []byte, frameRate float64) error {
	c := &jpegCodec{}
	if err := c.encoder.Init(); err != nil {
		return err
	}
	v.codec = c
	start, end := []byte{0xff, 0xd8}, []byte{0xff, 0xd9} // no compressed data contains them
	for len(data) > 0 {
		size := bytes.Index(data, end) + len(end)
		if !bytes.HasPrefix(data, start) || size < len(end) {
			return fmt.Errorf("image %d is not JPEG", len(v.units))
		}
		at := int64(float64(len(v.units)) * ticksPerSecond / frameRate)
		v.units = append(v.units, unit{parts: [][]byte{withTwoTables(data[:size:size])}, pts: at, dts: at})
		data = data[size:]
	}
	return nil
}

// withTwoTables returns a JPEG image that has its only quantisation table twice, as RTP wants it, for brightness and for colour. ffmpeg and
// GStreamer refuse images with one.
func withTwoTables(image []byte) []byte {
	marker := []byte{0xff, 0xdb, 0, 67} // a segment with one table of 8 bits
	at := bytes.Index(image, marker)
	if bytes.Count(image, marker[:2]) != 1 || at < 0 || at+2+67 > len(image) {
		return image
	}
	table := bytes.Clone(image[at : at+2+67])
	table[len(marker)] = 1 // its number
	return slices.Insert(image, at+len(table), table...)
}

// prepare brings the access units into the form in which they are sent.
func (v *video) prepare(parameters Parameters) error {
	first := slices.IndexFunc(v.units, func(u unit) bool { return v.codec.key(u.parts) })
	if first < 0 {
		return errors.New("no key frame")
	}
	v.units = v.units[first:]
	if err := v.findSets(); err != nil {
		return err
	}
	last := len(v.units) - 1
	begin := v.units[0].dts
	v.length = ticksPerSecond / 25
	if last > 0 {
		v.length = (v.units[last].dts - begin) * int64(last+1) / int64(last)
	}
	for i := range v.units {
		u := &v.units[i]
		u.key = v.codec.key(u.parts)
		u.pts -= begin
		u.dts -= begin
		v.reorder = max(v.reorder, u.pts-u.dts)
		u.parts = slices.DeleteFunc(u.parts, func(part []byte) bool { return v.codec.set(part) >= 0 })
		if u.key {
			v.keys = append(v.keys, i)
			if parameters != ParametersInSDP {
				u.parts = slices.Concat(v.sets, u.parts)
			}
		}
		if len(u.parts) == 0 {
			return fmt.Errorf("access unit %d has parameter sets only", first+i)
		}
		var err error
		if u.payloads, err = v.encode(u.parts); err != nil {
			return fmt.Errorf("access unit %d: %w", first+i, err)
		}
	}
	return nil
}

// findSets collects the parameter sets of the first key frame, by position. A file in which they change is not supported.
func (v *video) findSets() error {
	v.sets = make([][]byte, v.codec.sets())
	for _, part := range v.units[0].parts {
		if at := v.codec.set(part); at >= 0 {
			v.sets[at] = part
		}
	}
	if slices.ContainsFunc(v.sets, func(set []byte) bool { return set == nil }) {
		return errors.New("the first key frame has no parameter sets")
	}
	return nil
}

// frame returns the mean duration of a frame in ticks.
func (v *video) frame() int64 { return v.length / int64(len(v.units)) }

// offset returns the unit with which a path begins: the paths are spread over the file, and their key frames over a group of pictures.
func (v *video) offset(path, paths int) int {
	group := path * len(v.keys) / paths
	next := len(v.units)
	if group+1 < len(v.keys) {
		next = v.keys[group+1]
	}
	return v.keys[group] + path*(next-v.keys[group])/paths
}

package source

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/engine"
)

// size is an image's width and height in pixels.
type size struct{ width, height int }

func (s size) String() string { return fmt.Sprintf("%dx%d", s.width, s.height) }

// sizeLimit is the maximum number of pixels of an image.
type sizeLimit int

// check is capture.CheckSize with this limit.
func (l sizeLimit) check(s size, format engine.PixelFormat) error {
	return capture.CheckSize(format, s.width, s.height, int(l))
}

var (
	errNotImage        = errors.New("not an image that OpenCV can read")
	errTruncatedHeader = errors.New("the image's header is truncated")
)

// encodedSize reads the size of a JPEG, PNG, BMP, WebP, TIFF or PNM image from its header. It allocates nothing.
func encodedSize(data []byte) (size, error) {
	switch {
	case bytes.HasPrefix(data, []byte{0xFF, 0xD8}):
		return jpegSize(data)
	case bytes.HasPrefix(data, []byte("\x89PNG\r\n\x1a\n")):
		return pngSize(data)
	case bytes.HasPrefix(data, []byte("BM")):
		return bmpSize(data)
	case len(data) >= 12 && string(data[:4]) == "RIFF" && string(data[8:12]) == "WEBP":
		return webpSize(data)
	case bytes.HasPrefix(data, []byte("II")), bytes.HasPrefix(data, []byte("MM")):
		return tiffSize(data)
	case len(data) >= 3 && data[0] == 'P' && data[1] >= '1' && data[1] <= '6':
		return pnmSize(data)
	}
	return size{}, errNotImage
}

// The JPEG markers used here.
const (
	markerSOF0  = 0xC0 // start of frame, first of sixteen codes, not all of which are SOF
	markerDHT   = 0xC4
	markerJPG   = 0xC8
	markerDAC   = 0xCC
	markerRST0  = 0xD0
	markerSOI   = 0xD8
	markerEOI   = 0xD9
	markerSOS   = 0xDA
	markerTEM   = 0x01
	frameHeader = 8 // bytes from a frame's marker to the end of its width
)

// truncatedJPEG reports whether a JPEG has no end marker after its image. Cheap cameras leave out these two bytes. Where more is missing,
// OpenCV fills the rest of the image with grey.
func truncatedJPEG(data []byte) bool {
	if !bytes.HasPrefix(data, []byte{0xFF, markerSOI}) {
		return false
	}
	frame, err := jpegFrame(data)
	return err == nil && bytes.LastIndex(data[frame:], []byte{0xFF, markerEOI}) < 0
}

func jpegSize(data []byte) (size, error) {
	at, err := jpegFrame(data)
	if err != nil {
		return size{}, err
	}
	big := binary.BigEndian
	return size{int(big.Uint16(data[at+6:])), int(big.Uint16(data[at+4:]))}, nil
}

// jpegFrame walks over the segments as libjpeg does and returns the position of the first frame's marker, after which the header is
// complete. Images within a segment, such as thumbnails, are skipped.
func jpegFrame(data []byte) (int, error) {
	for at := 2; ; {
		skip := bytes.IndexByte(data[at:], 0xFF)
		if skip < 0 {
			return 0, errTruncatedHeader
		}
		for at += skip; at < len(data) && data[at] == 0xFF; at++ { // fill bytes
		}
		if at+2 >= len(data) {
			return 0, errTruncatedHeader
		}
		marker := data[at]
		switch {
		case marker == 0, marker == markerTEM, marker >= markerRST0 && marker < markerSOI:
			at++ // has no length
			continue
		case marker == markerSOI, marker == markerEOI, marker == markerSOS:
			return 0, errNotImage
		case marker >= markerSOF0 && marker < markerRST0 && marker != markerDHT && marker != markerJPG && marker != markerDAC:
			if len(data) < at+frameHeader {
				return 0, errTruncatedHeader
			}
			return at, nil
		}
		length := int(binary.BigEndian.Uint16(data[at+1:]))
		at += 1 + length
		if length < 2 || at > len(data) {
			return 0, errTruncatedHeader
		}
	}
}

func pngSize(data []byte) (size, error) {
	if len(data) < 24 {
		return size{}, errTruncatedHeader
	}
	if string(data[12:16]) != "IHDR" {
		return size{}, errNotImage
	}
	return size{int(binary.BigEndian.Uint32(data[16:])), int(binary.BigEndian.Uint32(data[20:]))}, nil
}

func bmpSize(data []byte) (size, error) {
	little := binary.LittleEndian
	switch {
	case len(data) < 26:
		return size{}, errTruncatedHeader
	case little.Uint32(data[14:]) == 12: // OS/2
		return size{int(little.Uint16(data[18:])), int(little.Uint16(data[20:]))}, nil
	}
	width, height := int(int32(little.Uint32(data[18:]))), int(int32(little.Uint32(data[22:])))
	return size{width, max(height, -height)}, nil // negative for top-down images
}

func webpSize(data []byte) (size, error) {
	if len(data) < 30 {
		return size{}, errTruncatedHeader
	}
	little := binary.LittleEndian
	switch string(data[12:16]) {
	case "VP8 ":
		return size{int(little.Uint16(data[26:]) & 0x3FFF), int(little.Uint16(data[28:]) & 0x3FFF)}, nil
	case "VP8L":
		bits := little.Uint32(data[21:])
		return size{int(bits&0x3FFF) + 1, int(bits>>14&0x3FFF) + 1}, nil
	case "VP8X":
		return size{int(little.Uint32(data[24:])&0xFFFFFF) + 1, int(little.Uint32(data[26:])>>8) + 1}, nil
	}
	return size{}, errNotImage
}

// The TIFF tags of the size, and the types that their values may have.
const (
	tagWidth  = 256
	tagHeight = 257
	typeShort = 3
	typeLong  = 4
)

// tiffSize reads the first directory, which is the image that OpenCV decodes.
func tiffSize(data []byte) (size, error) {
	var order binary.ByteOrder = binary.LittleEndian
	if data[0] == 'M' {
		order = binary.BigEndian
	}
	if len(data) < 8 {
		return size{}, errTruncatedHeader
	}
	if order.Uint16(data[2:]) != 42 {
		return size{}, errNotImage
	}
	directory := int(order.Uint32(data[4:]))
	if directory < 8 || directory+2 > len(data) {
		return size{}, errTruncatedHeader
	}
	var s size
	entries := int(order.Uint16(data[directory:]))
	for i := range entries {
		at := directory + 2 + 12*i
		if at+12 > len(data) {
			return size{}, errTruncatedHeader
		}
		side := &s.width
		switch order.Uint16(data[at:]) {
		case tagWidth:
		case tagHeight:
			side = &s.height
		default:
			continue
		}
		kind := order.Uint16(data[at+2:])
		switch {
		case *side != 0: // duplicate tag
			return size{}, errNotImage
		case kind == typeShort:
			*side = int(order.Uint16(data[at+8:]))
		case kind == typeLong:
			*side = int(order.Uint32(data[at+8:]))
		default:
			return size{}, errNotImage
		}
	}
	return s, nil
}

// pnmSize reads the two numbers after the signature, which comments may separate.
func pnmSize(data []byte) (size, error) {
	at := 2
	next := func() (int, error) {
		for at < len(data) && (data[at] <= ' ' || data[at] == '#') {
			if data[at] == '#' {
				for at < len(data) && data[at] != '\n' && data[at] != '\r' {
					at++
				}
				continue
			}
			at++
		}
		value, start := 0, at
		for ; at < len(data) && data[at] >= '0' && data[at] <= '9' && value <= engine.MaxSide; at++ {
			value = 10*value + int(data[at]-'0')
		}
		if at == start {
			return 0, errNotImage
		}
		return value, nil
	}
	width, err := next()
	if err != nil {
		return size{}, err
	}
	height, err := next()
	return size{width, height}, err
}

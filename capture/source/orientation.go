package source

import (
	"bytes"
	"encoding/binary"

	"gocv.io/x/gocv"
)

// tagOrientation is the EXIF tag of an image's orientation, 1 to 8.
const tagOrientation = 0x0112

// upright is the orientation of an image that is stored as it is shown.
const upright = 1

// webpOrientation returns the EXIF orientation of a WebP image, which OpenCV does not apply; upright for other images.
func webpOrientation(data []byte) int {
	if len(data) < 12 || string(data[:4]) != "RIFF" || string(data[8:12]) != "WEBP" {
		return upright
	}
	for rest := data[12:]; len(rest) >= 8; {
		length := int64(binary.LittleEndian.Uint32(rest[4:]))
		chunk := rest[8:]
		if length > int64(len(chunk)) {
			return upright
		}
		if string(rest[:4]) == "EXIF" {
			return exifOrientation(chunk[:length])
		}
		length += length & 1 // chunks are padded
		rest = chunk[min(length, int64(len(chunk))):]
	}
	return upright
}

// exifOrientation returns the orientation in the first directory of EXIF data, upright if there is no valid one.
func exifOrientation(data []byte) int {
	data = bytes.TrimPrefix(data, []byte("Exif\x00\x00")) // as in JPEG; some programs write it into WebP, too
	if len(data) < 8 {
		return upright
	}
	var order binary.ByteOrder
	switch string(data[:4]) {
	case "II*\x00":
		order = binary.LittleEndian
	case "MM\x00*":
		order = binary.BigEndian
	default:
		return upright
	}
	directory := int64(order.Uint32(data[4:]))
	if directory+2 > int64(len(data)) {
		return upright
	}
	entries := data[directory+2:]
	for range order.Uint16(data[directory:]) {
		if len(entries) < 12 {
			return upright
		}
		if order.Uint16(entries) == tagOrientation && order.Uint16(entries[2:]) == typeShort {
			value := int(order.Uint16(entries[8:]))
			if value < upright || value > 8 {
				return upright
			}
			return value
		}
		entries = entries[12:]
	}
	return upright
}

// orient writes an image of an orientation into another as it is shown.
func orient(from gocv.Mat, to *gocv.Mat, orientation int) error {
	const aroundX, aroundY = 0, 1
	switch orientation {
	case 2:
		return gocv.Flip(from, to, aroundY)
	case 3:
		return gocv.Rotate(from, to, gocv.Rotate180Clockwise)
	case 4:
		return gocv.Flip(from, to, aroundX)
	case 5:
		return gocv.Transpose(from, to)
	case 6:
		return gocv.Rotate(from, to, gocv.Rotate90Clockwise)
	case 7:
		turned := gocv.NewMat()
		defer turned.Close()
		if err := gocv.Rotate(from, &turned, gocv.Rotate180Clockwise); err != nil {
			return err
		}
		return gocv.Transpose(turned, to)
	case 8:
		return gocv.Rotate(from, to, gocv.Rotate90CounterClockwise)
	}
	from.CopyTo(to)
	return nil
}

// heifHeader bounds how much of an AVIF or HEIF file is searched for its properties, in bytes. They precede the coded image.
const heifHeader = 1 << 20

// heifOrientation returns the orientation of an AVIF or HEIF image as the EXIF number of the same; upright for other files. In these
// formats the properties irot and imir of the primary item are normative, and EXIF data is not (ISO/IEC 23000-22, MIAF). FFmpeg does not
// apply them.
func heifOrientation(data []byte) int {
	kind := box(data, "ftyp")
	meta := box(data, "meta")
	if kind == nil || len(meta) < 4 {
		return upright
	}
	meta = meta[4:] // version and flags
	properties := box(meta, "iprp")
	container := box(properties, "ipco")
	associations := box(properties, "ipma")
	angle, mirror := 0, 0
	for _, index := range associated(associations, primaryItem(meta)) {
		name, content := property(container, index)
		if len(content) == 0 {
			continue
		}
		switch name {
		case "irot":
			angle = int(content[0] & 3) // quarter turns against the clock
		case "imir":
			mirror = 1 + int(content[0]&1) // exchanges top and bottom, or left and right, after the rotation
		}
	}
	return [4][3]int{{upright, 4, 2}, {8, 5, 7}, {3, 2, 4}, {6, 7, 5}}[angle][mirror]
}

// nextBox splits the first box off.
func nextBox(data []byte) (name string, content, rest []byte) {
	if len(data) < 8 {
		return "", nil, nil
	}
	size := int64(binary.BigEndian.Uint32(data))
	if size < 8 || size > int64(len(data)) { // also 64-bit sizes and boxes up to the file's end, which only media data has
		return "", nil, nil
	}
	return string(data[4:8]), data[8:size], data[size:]
}

// box returns the content of the first box of a name, nil if there is none.
func box(data []byte, name string) []byte {
	for len(data) > 0 {
		var found string
		var content []byte
		found, content, data = nextBox(data)
		if found == name {
			return content
		}
	}
	return nil
}

// property returns a box of the container by its number from 1 on.
func property(container []byte, index int) (name string, content []byte) {
	for range index {
		name, content, container = nextBox(container)
	}
	return name, content
}

// primaryItem returns the number of the item that is shown, 0 if it is unknown.
func primaryItem(meta []byte) uint32 {
	content := box(meta, "pitm")
	switch {
	case len(content) >= 8 && content[0] > 0:
		return binary.BigEndian.Uint32(content[4:])
	case len(content) >= 6 && content[0] == 0:
		return uint32(binary.BigEndian.Uint16(content[4:]))
	}
	return 0
}

// associated returns the numbers of an item's properties in a box ipma.
func associated(data []byte, item uint32) (indices []int) {
	if len(data) < 8 {
		return nil
	}
	wideItems, wideIndices := data[0] > 0, data[3]&1 != 0
	take := func(wide bool, short int) (value uint32, ok bool) {
		size := short
		if wide {
			size *= 2
		}
		if len(data) < size {
			return 0, false
		}
		for _, b := range data[:size] {
			value = value<<8 | uint32(b)
		}
		data = data[size:]
		return value, true
	}
	entries := binary.BigEndian.Uint32(data[4:])
	data = data[8:]
	for ; entries > 0; entries-- {
		id, _ := take(wideItems, 2)
		count, ok := take(false, 1)
		if !ok {
			return indices
		}
		for range count {
			index, ok := take(wideIndices, 1)
			if !ok {
				return indices
			}
			mask := uint32(0x7F) // without the bit of an essential property
			if wideIndices {
				mask = 0x7FFF
			}
			if id == item {
				indices = append(indices, int(index&mask))
			}
		}
	}
	return indices
}

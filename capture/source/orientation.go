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

package annotate

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
)

// errCut is returned for a video that the encoder could not write to its end. OpenCV and GStreamer do not report failed writes.
var errCut = errors.New("the video is incomplete (is the disk full?)")

// checkWhole returns an error for an MP4 or AVI file that was not written to its end: its outermost parts must fill the file, and its index
// must be there.
func checkWhole(path string) (err error) {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	var head [16]byte
	indexed := false
	for at := int64(0); at < info.Size(); {
		n, err := file.ReadAt(head[:], at)
		if n < 12 || err != nil && !errors.Is(err, io.EOF) {
			return errors.Join(errCut, ignoreEnd(err))
		}
		size := int64(0)
		if string(head[:4]) == "RIFF" {
			size = 8 + int64(binary.LittleEndian.Uint32(head[4:]))
			indexed = true // its size is written last
		} else {
			size = int64(binary.BigEndian.Uint32(head[:4]))
			if size == 1 && n == len(head) {
				size = int64(binary.BigEndian.Uint64(head[8:]))
			}
			indexed = indexed || string(head[4:8]) == "moov"
		}
		if size < 12 && string(head[4:8]) != "free" || size < 8 || size > info.Size()-at {
			return fmt.Errorf("%w: %d bytes", errCut, info.Size())
		}
		if at += size; info.Size()-at < 8 {
			break
		}
	}
	if !indexed {
		return fmt.Errorf("%w: %d bytes", errCut, info.Size())
	}
	return nil
}

func ignoreEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

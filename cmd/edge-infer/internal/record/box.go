package record

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/bluenviron/mediacommon/v2/pkg/formats/fmp4"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/mp4"
)

// ownBox is the UUID of the box with a clip's row, which the start adopts a file by.
const ownBox = "edge-infer clip1"

const (
	boxHeader = 8
	// Limits of what is read of a file into memory. A fragment has about a second of video.
	maxHeaderBytes   = 1 << 20
	maxFragmentBytes = 256 << 20
)

// rowBox returns the row of a clip as an MP4 box, which players skip.
func rowBox(clip *Clip) ([]byte, error) {
	row, err := json.Marshal(clip)
	if err != nil {
		return nil, err
	}
	b := binary.BigEndian.AppendUint32(nil, uint32(boxHeader+len(ownBox)+len(row)))
	b = append(b, "uuid"...)
	b = append(b, ownBox...)
	return append(b, row...), nil
}

// contents is what a file of this package holds.
type contents struct {
	row      *Clip         // nil if there is none
	size     int64         // up to the end of the last whole fragment; 0 if there is none
	duration time.Duration // of the whole fragments
}

var errNotClip = errors.New("not a clip")

// readContents reads a file that may end anywhere, even within a box.
func readContents(r io.ReaderAt, size int64) (*contents, error) {
	c := &contents{}
	described := false
	last := [2]int64{} // where the newest whole fragment begins and ends
	fragment := int64(-1)
	for at := int64(0); at+boxHeader <= size; {
		var head [boxHeader]byte
		if _, err := r.ReadAt(head[:], at); err != nil {
			return nil, err
		}
		length, kind := int64(binary.BigEndian.Uint32(head[:])), string(head[4:])
		if length < boxHeader {
			break // sizes of 64 bits and "up to the end" are not written here
		}
		end := at + length
		if end > size {
			break
		}
		switch kind {
		case "moov":
			described = true
		case "uuid":
			row, err := readRow(r, at+boxHeader, length-boxHeader)
			if err != nil {
				return nil, err
			}
			c.row = row
		case "moof":
			fragment = at
		case "mdat":
			if fragment >= 0 {
				last = [2]int64{fragment, end}
			}
			fragment = -1
		}
		at = end
	}
	if !described {
		return nil, errNotClip
	}
	c.size = last[1]
	if c.size == 0 {
		return c, nil
	}
	var err error
	c.duration, err = fragmentEnd(r, last[0], last[1])
	return c, err
}

// readRow reads the content of a uuid box; nil if it is not this program's.
func readRow(r io.ReaderAt, at, length int64) (*Clip, error) {
	if length < int64(len(ownBox)) || length > maxHeaderBytes {
		return nil, nil
	}
	data := make([]byte, length)
	if _, err := r.ReadAt(data, at); err != nil {
		return nil, err
	}
	row, own := bytes.CutPrefix(data, []byte(ownBox))
	if !own {
		return nil, nil
	}
	clip := &Clip{}
	if err := json.Unmarshal(row, clip); err != nil {
		return nil, fmt.Errorf("read the clip's row: %w", err)
	}
	return clip, nil
}

// fragmentEnd returns the time at which a fragment ends.
func fragmentEnd(r io.ReaderAt, at, end int64) (time.Duration, error) {
	if end-at > maxFragmentBytes {
		return 0, errNotClip
	}
	data := make([]byte, end-at)
	if _, err := r.ReadAt(data, at); err != nil {
		return 0, err
	}
	var parts fmp4.Parts
	if err := parts.Unmarshal(data); err != nil {
		return 0, fmt.Errorf("read fragment: %w", err)
	}
	var ticks uint64
	for _, part := range parts {
		for _, track := range part.Tracks {
			until := track.BaseTime
			for _, sample := range track.Samples {
				until += uint64(sample.Duration)
			}
			ticks = max(ticks, until)
		}
	}
	if ticks > 1<<48 {
		return 0, errNotClip
	}
	return mp4.Duration(int64(ticks)), nil
}

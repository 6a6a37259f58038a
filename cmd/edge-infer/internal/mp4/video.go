// Package mp4 turns the access units of a camera into fragmented MP4, for clips and for live view, without encoding them again.
package mp4

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/bluenviron/mediacommon/v2/pkg/codecs/h264"
	"github.com/bluenviron/mediacommon/v2/pkg/codecs/h265"
	"github.com/bluenviron/mediacommon/v2/pkg/formats/fmp4"
	"github.com/bluenviron/mediacommon/v2/pkg/formats/fmp4/seekablebuffer"

	"github.com/edge-infer/edge-infer/capture"
)

const (
	// timescale is the clock of files, as that of RTP: ticks per second.
	timescale = 90000
	// maxReorder is how far times of images go back within a stream; maxLead is how much further than the time of arrival they go
	// ahead. Beyond, the camera's clock was set.
	maxReorder = 2 * time.Second
	maxLead    = 2 * time.Second
	// maxDrift is how far the camera's clock may go away from this machine's within a file, which includes stalls.
	maxDrift = 10 * time.Second
)

// Video turns access units of one format into fragmented MP4. Its times begin at 0 and continue over changes of the camera's clock and over
// reconnects. One goroutine uses it.
type Video struct {
	// FragmentLength is the least length of a fragment. With 0 each image is one.
	FragmentLength time.Duration

	format *format
	sets   [][]byte // parameter sets of the newest key frame
	latest *format  // of the newest key frame

	// Times, in ticks.
	rejoined bool         // the next unit is of another connection
	begun    bool         // the first unit has been added
	raw      int64        // PTS of the newest unit by the camera's clock
	base     int64        // from the camera's clock to this file's, which is 0 at the first image
	shift    int64        // from this file's clock to its timestamps: no image is decoded before 0
	last     int64        // largest PTS in the file
	lastDTS  int64        // of the newest unit
	period   int64        // distance of the newest two
	first    int64        // Received of the first unit, nanoseconds
	received int64        // of the newest
	extract  dtsExtractor // nil for JPEG
	end      int64        // of the fragments that were returned
	shown    int64        // timestamp of the newest unit

	number  uint32         // of the next fragment
	start   int64          // DTS of the next fragment
	samples []*fmp4.Sample // of the next fragment; the last one's duration is not known
	nals    [][]byte
}

// dtsExtractor computes in which order images are decoded; the one of H.264 or of H.265.
type dtsExtractor interface {
	Extract(nals [][]byte, pts int64) (int64, error)
}

// New begins a file with a key frame, which the caller adds. Its parameter sets must be there.
func New(unit *capture.Unit) (*Video, error) {
	v := &Video{}
	if unit.Codec != capture.MJPEG {
		v.nals = splitNAL(nil, unit.Data)
	}
	f, err := formatOf(unit, v.nals)
	if err != nil {
		return nil, err
	}
	v.format, v.latest, v.sets = f, f, f.sets
	switch f.codec {
	case capture.H264:
		e := &h264.DTSExtractor{}
		e.Initialize()
		v.extract = e
	case capture.H265:
		e := &h265.DTSExtractor{}
		e.Initialize()
		v.extract = e
	}
	return v, nil
}

// Header returns what the file begins with.
func (v *Video) Header() ([]byte, error) {
	header := fmp4.Init{Tracks: []*fmp4.InitTrack{{ID: 1, TimeScale: timescale, Codec: v.format.entry}}}
	var b seekablebuffer.Buffer
	if err := header.Marshal(&b); err != nil {
		return nil, fmt.Errorf("describe video: %w", err)
	}
	return b.Bytes(), nil
}

// Accepts reports whether a unit can go on in this file. A key frame that it returns true for must be added next.
func (v *Video) Accepts(unit *capture.Unit) bool {
	if !unit.Key {
		return unit.Codec == v.format.codec
	}
	if unit.Codec != v.format.codec || v.drift() > maxDrift {
		return false
	}
	v.nals = v.nals[:0]
	if unit.Codec != capture.MJPEG {
		v.nals = splitNAL(v.nals, unit.Data)
		if !v.changed() {
			return true
		}
	}
	f, err := formatOf(unit, v.nals)
	if err != nil { // such as a key frame without sets, which has the earlier ones
		return unit.Codec != capture.MJPEG
	}
	if !v.format.fits(f) {
		return false
	}
	v.latest, v.sets = f, f.sets
	return true
}

// changed reports whether the parameter sets of nals differ from those of the last key frame.
func (v *Video) changed() bool {
	for _, nal := range v.nals {
		at := set(v.format.codec, nal)
		if at >= 0 && !bytes.Equal(nal, v.sets[at]) {
			return true
		}
	}
	return false
}

// drift returns the difference of the camera's clock from this machine's.
func (v *Video) drift() time.Duration {
	return (time.Duration(v.received-v.first) - Duration(v.last)).Abs()
}

// Add adds a unit that Accepts accepts, and returns the fragment that it completes, if any.
func (v *Video) Add(unit *capture.Unit) ([]byte, error) {
	v.nals = v.nals[:0]
	if unit.Codec != capture.MJPEG {
		v.nals = splitNAL(v.nals, unit.Data)
	}
	payload := v.payload(unit)
	if len(payload) == 0 {
		return nil, nil
	}
	pts := v.pts(unit)
	dts := v.dts(pts)
	pts = max(pts+v.shift, 0)
	v.shown = pts
	var fragment []byte
	if n := len(v.samples); n > 0 {
		v.samples[n-1].Duration = uint32(min(dts-v.lastDTS, 1<<32-1))
		v.period = dts - v.lastDTS
		if Duration(dts-v.start) >= v.FragmentLength {
			var err error
			fragment, err = v.cut()
			if err != nil {
				return nil, err
			}
		}
	}
	if len(v.samples) == 0 {
		v.start = dts
	}
	v.lastDTS = dts
	v.samples = append(v.samples, &fmp4.Sample{PTSOffset: int32(pts - dts), IsNonSyncSample: !unit.Key, Payload: payload})
	return fragment, nil
}

// payload returns the data of a unit as MP4 has it: NAL units with their lengths, without parameter sets, which are in the header.
func (v *Video) payload(unit *capture.Unit) []byte {
	if unit.Codec == capture.MJPEG {
		return unit.Data
	}
	payload := make([]byte, 0, len(unit.Data))
	for _, nal := range v.nals {
		at := set(unit.Codec, nal)
		if at >= 0 && v.latest == v.format && bytes.Equal(nal, v.format.sets[at]) || delimiter(unit.Codec, nal) {
			continue
		}
		payload = binary.BigEndian.AppendUint32(payload, uint32(len(nal)))
		payload = append(payload, nal...)
	}
	return payload
}

// pts returns the time of a unit in the file. Where the camera's clock jumps, the time of arrival is used instead.
func (v *Video) pts(unit *capture.Unit) int64 {
	raw := ticks(unit.PTS)
	if !v.begun {
		v.begun = true
		v.base = -raw
		v.first = unit.Received
	} else {
		step := Duration(raw - v.raw)
		passed := time.Duration(unit.Received - v.received)
		if v.rejoined || step < -maxReorder || step > passed+maxLead {
			v.base = v.last + max(ticks(passed), 1) - raw
		}
	}
	v.rejoined = false
	v.raw, v.received = raw, unit.Received
	pts := raw + v.base
	v.last = max(v.last, pts)
	return pts
}

// dts returns when a unit is decoded, later than the one before. A stream that the library cannot read gets times between its images',
// which all players accept although some decode a little late.
func (v *Video) dts(pts int64) int64 {
	dts := pts
	var err error
	if v.extract != nil {
		dts, err = v.extract.Extract(v.nals, pts)
	}
	if v.number == 0 && len(v.samples) == 0 {
		if err == nil && dts < 0 {
			v.shift = -dts
		}
		return 0
	}
	dts += v.shift
	pts += v.shift
	if err != nil || dts <= v.lastDTS {
		dts = max(v.lastDTS+1, min(pts, v.lastDTS+v.period))
	}
	return max(dts, v.end) // Flush has estimated the duration of an image
}

// Flush returns a fragment with what has been added since the last one, nil if there is nothing.
func (v *Video) Flush() ([]byte, error) {
	if len(v.samples) == 0 {
		return nil, nil
	}
	period := v.period
	if period <= 0 {
		period = timescale / 25
	}
	v.samples[len(v.samples)-1].Duration = uint32(min(period, timescale))
	return v.cut()
}

// cut returns the samples as a fragment, whose last duration is set.
func (v *Video) cut() ([]byte, error) {
	part := fmp4.Part{SequenceNumber: v.number, Tracks: []*fmp4.PartTrack{{ID: 1, BaseTime: uint64(v.start), Samples: v.samples}}}
	var b seekablebuffer.Buffer
	if err := part.Marshal(&b); err != nil {
		return nil, fmt.Errorf("write fragment: %w", err)
	}
	end := v.start
	for _, sample := range v.samples {
		end += int64(sample.Duration)
	}
	v.end = end
	v.number++
	v.samples = nil
	return b.Bytes(), nil
}

func ticks(d time.Duration) int64 { return int64(d/100000*9 + d%100000*9/100000) }

// Duration converts ticks of a file, 90,000 per second.
func Duration(ticks int64) time.Duration { return time.Duration(ticks/9*100000 + ticks%9*100000/9) }

// Codec returns the format as RFC 6381 names it, such as avc1.64001f; mjpeg for JPEGs.
func (v *Video) Codec() string { return v.format.name }

// Size returns the size of the images in pixels.
func (v *Video) Size() (width, height int) { return v.format.width, v.format.height }

// Rejoin is called before the first unit of another connection to the camera.
func (v *Video) Rejoin() { v.rejoined = true }

// First returns when the first unit was received, in nanoseconds of CLOCK_MONOTONIC.
func (v *Video) First() int64 { return v.first }

// Newest is First of the newest unit.
func (v *Video) Newest() int64 { return v.received }

// Shown returns when the newest unit is shown, in the file's time.
func (v *Video) Shown() time.Duration { return Duration(v.shown) }

// Waiting reports whether units wait for the end of their fragment.
func (v *Video) Waiting() bool { return len(v.samples) > 0 }

// Length returns the length of the fragments that were returned.
func (v *Video) Length() time.Duration { return Duration(v.end) }

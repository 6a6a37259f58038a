// Command peers writes what trackers are compared on, simulated scenes and videos of real people, in the form of the MOTChallenge, and this
// project's tracks of them. Where the camera moves, its motion is measured on painted images. peers.py beside it has other projects'
// trackers follow the same boxes at the same thresholds and scores them all; `make track-bench` runs both.
package main

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/edge-infer/edge-infer/capture/motion"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/onnx"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/track"
	"github.com/edge-infer/edge-infer/postprocess/track/crowd"
)

// thresholds are the same for everybody.
type thresholds struct {
	High float64 `json:"high"` // score of the first matching
	Low  float64 `json:"low"`  // and of the second
	New  float64 `json:"new"`  // that a new track needs
	Keep float64 `json:"keep"` // seconds that a lost track is kept
	// Looks is how many seconds pass between two looks at an object, where the video has vectors.
	Looks float64 `json:"looks"`
	// Recall is for how many seconds one that was lost may be known again by its looks.
	Recall float64 `json:"recall"`
}

// Where the tracks lie, without looks at the objects and with them.
const (
	plain   = "edge-infer"
	looking = "edge-infer with looks"
)

// sequence is one video.
type sequence struct {
	Name   string  `json:"name"`
	Scene  string  `json:"scene"`
	Rate   float64 `json:"rate"`
	Size   [2]int  `json:"size"` // width and height
	Frames int     `json:"frames"`
	Moving bool    `json:"moving"` // the camera does
	// Microseconds is what this project's tracker took for a frame, without looks and with them.
	Microseconds map[string]float64 `json:"microseconds"`
}

func main() {
	out := flag.String("out", "", "directory to write to")
	videos := flag.String("videos", "", "directory with videos of real people, as videos.py leaves them")
	seeds := flag.Uint64("seeds", 2, "videos of each scene")
	exact := flag.Bool("exact", false, "give the camera's motion as the scene has it, instead of measuring it on painted images")
	var limits thresholds
	flag.Float64Var(&limits.High, "high", 0.5, "score of the first matching")
	flag.Float64Var(&limits.Low, "low", crowd.MinScore, "score of the second matching")
	flag.Float64Var(&limits.New, "new", 0.6, "score of a new track")
	flag.Float64Var(&limits.Keep, "keep", 1, "seconds that a lost track is kept")
	flag.Float64Var(&limits.Looks, "looks", 0.5, "seconds between two looks at an object")
	flag.Float64Var(&limits.Recall, "recall", track.DefaultMaxLostAge.Seconds(), "seconds for which looks are remembered")
	flag.Parse()
	if err := run(*out, *videos, *seeds, *exact, limits); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

func run(out, videos string, seeds uint64, exact bool, limits thresholds) error {
	if out == "" {
		return fmt.Errorf("-out says which directory to write to")
	}
	var list struct {
		thresholds
		Sequences []sequence `json:"sequences"`
	}
	list.thresholds = limits
	each := func(f video) error {
		spent := map[string]float64{}
		var errs []error
		for _, name := range []string{plain, looking} {
			took, err := follow(filepath.Join(out, "trackers", name, "data", f.name+".txt"), f, limits, name == looking)
			spent[name] = took
			errs = append(errs, err)
		}
		err := errors.Join(append(errs, describe(filepath.Join(out, "videos", f.name), f.frames))...)
		list.Sequences = append(list.Sequences, sequence{
			Name: f.name, Scene: f.scene, Rate: f.rate, Size: [2]int{f.width, f.height}, Frames: len(f.frames), Moving: f.moving,
			Microseconds: spent,
		})
		return err
	}
	if err := simulated(seeds, exact, each); err != nil {
		return err
	}
	if videos != "" {
		if err := real(videos, each); err != nil {
			return err
		}
	}
	text, err := json.MarshalIndent(list, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(out, "videos.json"), text, 0o644)
}

// still is the motion of a camera that stays where it is.
var still = track.Affine{A: 1, E: 1}

// moved measures the camera's motion on a small image, apart from where the last tracks were. It gives it in pixels of the boxes.
func moved(camera *motion.Estimator, img []byte, tracks []postprocess.Track) (track.Affine, bool) {
	const small = crowd.Width / crowd.ImageWidth
	var boxes []motion.Box
	for i := range tracks {
		b := &tracks[i].Box
		boxes = append(boxes, motion.Box{X1: b.X1 / small, Y1: b.Y1 / small, X2: b.X2 / small, Y2: b.Y2 / small})
	}
	image := engine.Image{
		Data: img, Width: crowd.ImageWidth, Height: crowd.ImageHeight, Stride: crowd.ImageWidth, Format: engine.GRAY8,
	}
	m, ok := camera.Estimate(&image, boxes)
	m.C, m.F = m.C*small, m.F*small
	return track.Affine(m), ok
}

// follow writes the tracks of a video and gives the microseconds that a frame took. It puts the camera's measured motion into the frames.
// With looks the tracker hears between two frames what objects look like.
func follow(path string, f video, limits thresholds, looks bool) (float64, error) {
	frames := f.frames
	tracker := track.Tracker{
		HighThreshold: float32(limits.High), LowThreshold: float32(limits.Low), NewTrackThreshold: float32(limits.New),
		TrackBuffer: time.Duration(limits.Keep * float64(time.Second)), Width: f.width, Height: f.height,
		MaxLostAge: time.Duration(limits.Recall * float64(time.Second)),
	}
	if f.rate < 10 {
		tracker.BufferScale = track.LowRate.BufferScale()
	}
	if err := tracker.Open(); err != nil {
		return 0, err
	}
	var spent time.Duration
	due := map[uint64]time.Duration{} // of the next look
	var camera motion.Estimator
	var tracks []postprocess.Track
	err := write(path, func(w io.Writer) {
		start := time.Unix(0, 0)
		for n, frame := range frames {
			if frame.Image != nil {
				frames[n].Camera = still
				if m, ok := moved(&camera, frame.Image, tracks); ok {
					tracker.CompensateMotion(m)
					frames[n].Camera = m
				}
			}
			began := time.Now()
			if frame.Image == nil && f.moving {
				tracker.CompensateMotion(frame.Camera)
			}
			tracks = tracker.Update(start.Add(frame.At), frame.Detections)
			spent += time.Since(began)
			for _, tr := range tracks {
				if tr.State == postprocess.Active && tr.Index >= 0 {
					row(w, n, int(tr.ID), tr.Box, float64(tr.Score), 1)
				}
			}
			if looks {
				spent += look(&tracker, &frames[n], tracks, due, limits.Looks)
			}
		}
	})
	return float64(spent.Microseconds()) / float64(len(frames)), err
}

// look tells the tracker how those of its tracks look that were not looked at for a while, and gives the time that it took.
func look(
	tracker *track.Tracker, frame *crowd.Frame, tracks []postprocess.Track, due map[uint64]time.Duration, every float64,
) time.Duration {
	began := time.Now()
	for i := range tracks {
		tr := &tracks[i]
		if tr.Index < 0 || frame.At < due[tr.ID] {
			continue
		}
		if detail := frame.Detections[tr.Index].Detail; detail != nil {
			due[tr.ID] = frame.At + time.Duration(every*float64(time.Second))
			tracker.UpdateEmbedding(tr.ID, detail.Embedding)
		}
	}
	return time.Since(began)
}

// describe writes the truth, the detections with their vectors, and the camera's motion of a video.
func describe(dir string, frames []crowd.Frame) error {
	err := write(filepath.Join(dir, "gt", "gt.txt"), func(w io.Writer) {
		for n, frame := range frames {
			for _, p := range frame.Truth {
				row(w, n, p.ID, p.Box, 1, p.Visible)
			}
		}
	})
	if err != nil {
		return err
	}
	err = write(filepath.Join(dir, "det.txt"), func(w io.Writer) {
		for n, frame := range frames {
			for _, f := range frame.Detections {
				row(w, n, -1, f.Box, float64(f.Score), 1)
			}
		}
	})
	if err != nil {
		return err
	}
	if err := write(filepath.Join(dir, "looks.f16"), func(w io.Writer) { embeddings(w, frames) }); err != nil {
		return err
	}
	return write(filepath.Join(dir, "camera.txt"), func(w io.Writer) {
		for _, frame := range frames {
			c := frame.Camera
			fmt.Fprintln(w, c.A, c.B, c.C, c.D, c.E, c.F)
		}
	})
}

// embeddings writes the vectors of the detections, one after the other, as numbers of 16 bits, little endian. A detection without a vector
// has zeros; a video without any gives nothing.
func embeddings(w io.Writer, frames []crowd.Frame) {
	var none []float32
	for _, frame := range frames {
		for _, f := range frame.Detections {
			if f.Detail != nil && len(none) == 0 {
				none = make([]float32, len(f.Detail.Embedding))
			}
		}
	}
	var bytes []byte
	for _, frame := range frames {
		for _, f := range frame.Detections {
			vector := none
			if f.Detail != nil {
				vector = f.Detail.Embedding
			}
			bytes = bytes[:0]
			for _, v := range vector {
				bytes = binary.LittleEndian.AppendUint16(bytes, onnx.ToHalf(v))
			}
			_, _ = w.Write(bytes) // the buffer keeps an error until it is flushed
		}
	}
}

// row is a line of the MOTChallenge: frame, identity, left, top, width, height, score, class, visible share.
func row(w io.Writer, frame, id int, b postprocess.Box, score, visible float64) {
	fmt.Fprintf(w, "%d,%d,%.2f,%.2f,%.2f,%.2f,%.4f,1,%.3f\n", frame+1, id, b.X1, b.Y1, b.Width(), b.Height(), score, visible)
}

// write makes a file and its directories; an error of a write is kept by the buffer until it is flushed.
func write(path string, fill func(io.Writer)) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	w := bufio.NewWriter(file)
	fill(w)
	if err := w.Flush(); err != nil {
		return err
	}
	return file.Close()
}

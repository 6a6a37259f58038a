// Command track-benchmark writes the sequences on which trackers are compared, simulated scenes and real ones, in the format of the
// MOTChallenge, together with this project's tracks. If a simulated camera moves, its motion is measured on rendered images. compare.py
// runs the trackers of other projects on the same boxes and scores all of them; `make track-bench` runs both.
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
	"github.com/edge-infer/edge-infer/postprocess/track/simulation"
)

// thresholds are common to all trackers.
type thresholds struct {
	High float64 `json:"high"` // minimum score of the first stage
	Low  float64 `json:"low"`  // minimum score of the second stage
	New  float64 `json:"new"`  // minimum score of a new track
	Keep float64 `json:"keep"` // track buffer in seconds
	// EmbeddingInterval is the time between two embeddings of an object in seconds, if the sequence has embeddings.
	EmbeddingInterval float64 `json:"embedding_interval"`
	// MaxLostAge is how long a lost object can be re-identified, in seconds.
	MaxLostAge float64 `json:"max_lost_age"`
}

// Names of this project's trackers, without and with embeddings.
const (
	plain          = "edge-infer"
	withEmbeddings = "edge-infer with embeddings"
)

// summary describes a sequence for compare.py.
type summary struct {
	Name   string  `json:"name"`
	Scene  string  `json:"scene"`
	Rate   float64 `json:"rate"`
	Size   [2]int  `json:"size"` // width and height
	Frames int     `json:"frames"`
	Moving bool    `json:"moving"` // the camera moves, and its motion is known
	Half   string  `json:"half"`   // of the real sequences: "tuning" or "held out"; empty for sequences that are not split
	// Microseconds is the mean time of this project's trackers per frame.
	Microseconds map[string]float64 `json:"microseconds"`
}

func main() {
	out := flag.String("out", "", "directory to write to")
	videos := flag.String("videos", "", "directory of sequences of real people, as written by sequences.py")
	seeds := flag.Uint64("seeds", 2, "sequences per simulated scene")
	exact := flag.Bool("exact", false, "use the true camera motion instead of measuring it on rendered images")
	var limits thresholds
	flag.Float64Var(&limits.High, "high", track.DefaultHighThreshold, "minimum score of the first stage")
	flag.Float64Var(&limits.Low, "low", track.DefaultLowThreshold, "minimum score of the second stage")
	flag.Float64Var(&limits.New, "new", track.DefaultHighThreshold+0.1, "minimum score of a new track")
	flag.Float64Var(&limits.Keep, "keep", 1, "track buffer in seconds")
	flag.Float64Var(&limits.EmbeddingInterval, "embedding-interval", 0.5, "seconds between two embeddings of an object")
	flag.Float64Var(&limits.MaxLostAge, "max-lost-age", track.DefaultMaxLostAge.Seconds(), "seconds to re-identify lost objects")
	flag.Parse()
	if err := run(*out, *videos, *seeds, *exact, limits); err != nil {
		fmt.Fprintln(os.Stderr, "track-benchmark:", err)
		os.Exit(1)
	}
}

func run(out, videos string, seeds uint64, exact bool, limits thresholds) error {
	if out == "" {
		return errors.New("-out is required: the directory to write to")
	}
	var list struct {
		thresholds
		Sequences []summary `json:"sequences"`
	}
	list.thresholds = limits
	each := func(f sequence) error {
		spent := map[string]float64{}
		var errs []error
		names := []string{plain}
		if f.embedded() {
			names = append(names, withEmbeddings)
		}
		for _, name := range names {
			took, err := follow(filepath.Join(out, "trackers", name, "data", f.name+".txt"), f, limits, name == withEmbeddings)
			spent[name] = took
			errs = append(errs, err)
		}
		err := errors.Join(append(errs, describe(filepath.Join(out, "videos", f.name), f.frames))...)
		list.Sequences = append(list.Sequences, summary{
			Name: f.name, Scene: f.scene, Rate: f.rate, Size: [2]int{f.width, f.height}, Frames: len(f.frames), Moving: f.moving,
			Half: f.half, Microseconds: spent,
		})
		return err
	}
	if err := simulated(seeds, exact, each); err != nil {
		return err
	}
	if videos != "" {
		if err := recorded(videos, each); err != nil {
			return err
		}
	}
	text, err := json.MarshalIndent(list, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(out, "videos.json"), text, 0o644)
}

// still is the motion of a fixed camera.
var still = track.Affine{A: 1, E: 1}

// estimateMotion measures the camera's motion on a small image, ignoring the last tracks, and returns it in pixels of the boxes.
func estimateMotion(camera *motion.Estimator, img []byte, tracks []postprocess.Track) (track.Affine, bool) {
	const small = simulation.Width / simulation.ImageWidth
	var boxes []motion.Box
	for i := range tracks {
		b := &tracks[i].Box
		boxes = append(boxes, motion.Box{X1: b.X1 / small, Y1: b.Y1 / small, X2: b.X2 / small, Y2: b.Y2 / small})
	}
	image := engine.Image{
		Data: img, Width: simulation.ImageWidth, Height: simulation.ImageHeight, Stride: simulation.ImageWidth, Format: engine.GRAY8,
	}
	m, ok := camera.Estimate(&image, boxes)
	m.C, m.F = m.C*small, m.F*small
	return track.Affine(m), ok
}

// follow writes the tracks of a sequence and returns the microseconds per frame. It stores the measured camera motion in the frames. With
// embeddings the tracker receives embeddings between frames.
func follow(path string, f sequence, limits thresholds, embeddings bool) (float64, error) {
	frames := f.frames
	tracker := track.Tracker{
		HighThreshold: float32(limits.High), LowThreshold: float32(limits.Low), NewTrackThreshold: float32(limits.New),
		TrackBuffer: time.Duration(limits.Keep * float64(time.Second)), Width: f.width, Height: f.height,
		MaxLostAge: time.Duration(limits.MaxLostAge * float64(time.Second)),
	}
	if err := tracker.Open(); err != nil {
		return 0, err
	}
	var spent time.Duration
	due := map[uint64]time.Duration{} // time of the next embedding
	var camera motion.Estimator
	var tracks []postprocess.Track
	err := write(path, func(w io.Writer) {
		start := time.Unix(0, 0)
		for n, frame := range frames {
			if frame.Image != nil {
				frames[n].Camera = still
				if m, ok := estimateMotion(&camera, frame.Image, tracks); ok {
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
			if embeddings {
				spent += updateEmbeddings(&tracker, &frames[n], tracks, due, limits.EmbeddingInterval)
			}
		}
	})
	return float64(spent.Microseconds()) / float64(len(frames)), err
}

// updateEmbeddings passes the embeddings that are due to the tracker and returns the time that it took.
func updateEmbeddings(
	tracker *track.Tracker, frame *simulation.Frame, tracks []postprocess.Track, due map[uint64]time.Duration, interval float64,
) time.Duration {
	began := time.Now()
	for i := range tracks {
		tr := &tracks[i]
		if tr.Index < 0 || frame.At < due[tr.ID] {
			continue
		}
		if detail := frame.Detections[tr.Index].Detail; detail != nil {
			due[tr.ID] = frame.At + time.Duration(interval*float64(time.Second))
			tracker.UpdateEmbedding(tr.ID, detail.Embedding)
		}
	}
	return time.Since(began)
}

// describe writes ground truth, detections, embeddings and camera motion of a sequence.
func describe(dir string, frames []simulation.Frame) error {
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
	if err := write(filepath.Join(dir, "embeddings.f16"), func(w io.Writer) { writeEmbeddings(w, frames) }); err != nil {
		return err
	}
	return write(filepath.Join(dir, "camera.txt"), func(w io.Writer) {
		for _, frame := range frames {
			c := frame.Camera
			fmt.Fprintln(w, c.A, c.B, c.C, c.D, c.E, c.F)
		}
	})
}

// writeEmbeddings writes the embeddings of the detections as little-endian 16-bit floats, zeros for a detection without one, and nothing
// for a sequence without any.
func writeEmbeddings(w io.Writer, frames []simulation.Frame) {
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
			_, _ = w.Write(bytes) // Flush returns the error
		}
	}
}

// row writes a line of the MOTChallenge: frame, identity, left, top, width, height, score, class, visibility.
func row(w io.Writer, frame, id int, b postprocess.Box, score, visible float64) {
	fmt.Fprintf(w, "%d,%d,%.2f,%.2f,%.2f,%.2f,%.4f,1,%.3f\n", frame+1, id, b.X1, b.Y1, b.Width(), b.Height(), score, visible)
}

// write creates a file and its directories. Errors of fill are returned by Flush.
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

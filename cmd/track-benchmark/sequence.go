package main

import (
	"bufio"
	"encoding/base64"
	"encoding/binary"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/edge-infer/edge-infer/engine/onnx"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/track/simulation"
)

// sequence is one video: a simulated scene, or a real one in the format of the MOTChallenge.
type sequence struct {
	name, scene   string
	half          string // see summary
	rate          float64
	width, height int
	moving        bool // the camera moves, and its motion is known
	frames        []simulation.Frame
}

// simulated generates the sequences of all scenes, with exact camera motion or with images to measure it on.
func simulated(seeds uint64, exact bool, do func(sequence) error) error {
	for _, scene := range slices.Concat(simulation.Scenes(), simulation.OcclusionScenes()) {
		moving := scene.Pan || scene.Shake
		scene.Painted = moving && !exact
		for seed := uint64(1); seed <= seeds; seed++ {
			f := sequence{
				name: fmt.Sprintf("%s-%d", scene.Name, seed), scene: scene.Name, rate: scene.Rate,
				width: simulation.Width, height: simulation.Height, moving: moving, frames: scene.Video(seed),
			}
			if err := do(f); err != nil {
				return err
			}
		}
	}
	return nil
}

// embedded reports whether there are embeddings.
func (f *sequence) embedded() bool {
	return slices.ContainsFunc(f.frames, func(frame simulation.Frame) bool {
		return slices.ContainsFunc(frame.Detections, func(d postprocess.Detection) bool { return d.Detail != nil })
	})
}

// recorded reads the sequences of a directory, as written by sequences.py: NAME/seqinfo.ini, NAME/gt/gt.txt, NAME/det.txt. Without images
// the motion of their cameras is unknown.
func recorded(dir string, do func(sequence) error) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}
		f, err := readSequence(filepath.Join(dir, entry.Name()))
		if err == nil {
			err = do(f)
		}
		if err != nil {
			return fmt.Errorf("sequence %s: %w", entry.Name(), err)
		}
	}
	return nil
}

func readSequence(dir string) (sequence, error) {
	f := sequence{name: filepath.Base(dir), scene: filepath.Base(dir)}
	if err := f.readInfo(filepath.Join(dir, "seqinfo.ini")); err != nil {
		return f, err
	}
	for i := range f.frames {
		f.frames[i] = simulation.Frame{At: time.Duration(float64(i) / f.rate * float64(time.Second)), Camera: still}
	}
	err := readRows(filepath.Join(dir, "gt", "gt.txt"), f.frames, func(frame *simulation.Frame, id int, box postprocess.Box, _ float64) {
		frame.Truth = append(frame.Truth, simulation.Person{ID: id, Box: box, Visible: 1})
	})
	if err != nil {
		return f, err
	}
	embeddings, err := readEmbeddings(filepath.Join(dir, "embeddings.txt"))
	if err != nil {
		return f, err
	}
	return f, readRows(filepath.Join(dir, "det.txt"), f.frames, func(frame *simulation.Frame, _ int, box postprocess.Box, score float64) {
		found := postprocess.Detection{Box: box, Score: float32(score)}
		if len(embeddings) > 0 {
			found.Detail = embeddings[0]
			embeddings = embeddings[1:]
		}
		frame.Detections = append(frame.Detections, found)
	})
}

// readEmbeddings reads the embeddings of a sequence's boxes as printed by infer --json, one per line, with empty lines for boxes without
// one. The file is optional.
func readEmbeddings(path string) (all []*postprocess.Detail, err error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	for line := range strings.Lines(string(text)) {
		halves, err := base64.StdEncoding.DecodeString(strings.TrimSpace(line))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		var detail *postprocess.Detail
		if len(halves) > 1 {
			detail = &postprocess.Detail{}
			for ; len(halves) > 1; halves = halves[2:] {
				detail.Embedding = append(detail.Embedding, onnx.FromHalf(binary.LittleEndian.Uint16(halves)))
			}
		}
		all = append(all, detail)
	}
	return all, err
}

// readInfo reads group, half, frame rate, number of frames and their size.
func (f *sequence) readInfo(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	frames := 0
	for lines := bufio.NewScanner(file); lines.Scan(); {
		key, value, _ := strings.Cut(lines.Text(), "=")
		switch key {
		case "group":
			f.scene = value
		case "heldOut":
			f.half = map[string]string{"0": "tuning", "1": "held out"}[value]
		case "frameRate":
			f.rate, err = strconv.ParseFloat(value, 64)
		case "seqLength":
			frames, err = strconv.Atoi(value)
		case "imWidth":
			f.width, err = strconv.Atoi(value)
		case "imHeight":
			f.height, err = strconv.Atoi(value)
		}
		if err != nil {
			return err
		}
	}
	if !(f.rate > 0) || frames < 1 || frames > 1_000_000 || f.width < 1 || f.height < 1 {
		return errors.New("seqinfo.ini needs frameRate, seqLength, imWidth and imHeight")
	}
	f.frames = make([]simulation.Frame, frames)
	return nil
}

// readRows passes the rows of a MOTChallenge file to their frames.
func readRows(
	path string, frames []simulation.Frame, take func(frame *simulation.Frame, id int, box postprocess.Box, score float64),
) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	rows := csv.NewReader(file)
	for {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		var v [7]float64
		if len(row) < len(v) {
			return fmt.Errorf("%s: row with %d columns", path, len(row))
		}
		for i := range v {
			v[i], err = strconv.ParseFloat(row[i], 64)
			if err != nil {
				return err
			}
		}
		frame := int(v[0]) - 1
		if frame < 0 || frame >= len(frames) {
			return fmt.Errorf("%s: frame %d of %d", path, frame+1, len(frames))
		}
		left, top := float32(v[2]), float32(v[3])
		take(&frames[frame], int(v[1]), postprocess.Box{X1: left, Y1: top, X2: left + float32(v[4]), Y2: top + float32(v[5])}, v[6])
	}
}

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
	"github.com/edge-infer/edge-infer/postprocess/track/crowd"
)

// video is one sequence of images: a simulated scene's, or one of real people in the form of the MOTChallenge.
type video struct {
	name, scene   string
	rate          float64
	width, height int
	moving        bool // the camera does
	frames        []crowd.Frame
}

// simulated are the videos of all scenes. With exact they have the camera's motion as the scene has it, else images to measure it on.
func simulated(seeds uint64, exact bool, do func(video) error) error {
	for _, scene := range slices.Concat(crowd.Scenes(), crowd.OcclusionScenes()) {
		moving := scene.Pan || scene.Shake
		scene.Painted = moving && !exact
		for seed := uint64(1); seed <= seeds; seed++ {
			f := video{fmt.Sprintf("%s-%d", scene.Name, seed), scene.Name, scene.Rate, crowd.Width, crowd.Height, moving, scene.Video(seed)}
			if err := do(f); err != nil {
				return err
			}
		}
	}
	return nil
}

// real are the videos of a directory, as videos.py leaves them: NAME/seqinfo.ini, NAME/gt/gt.txt, NAME/det.txt. Their cameras stand still.
func real(dir string, do func(video) error) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}
		f, err := readVideo(filepath.Join(dir, entry.Name()))
		if err == nil {
			err = do(f)
		}
		if err != nil {
			return fmt.Errorf("video %s: %w", entry.Name(), err)
		}
	}
	return nil
}

func readVideo(dir string) (video, error) {
	f := video{name: filepath.Base(dir), scene: filepath.Base(dir)}
	if err := f.readInformation(filepath.Join(dir, "seqinfo.ini")); err != nil {
		return f, err
	}
	for i := range f.frames {
		f.frames[i] = crowd.Frame{At: time.Duration(float64(i) / f.rate * float64(time.Second)), Camera: still}
	}
	err := readRows(filepath.Join(dir, "gt", "gt.txt"), f.frames, func(frame *crowd.Frame, id int, box postprocess.Box, _ float64) {
		frame.Truth = append(frame.Truth, crowd.Person{ID: id, Box: box, Visible: 1})
	})
	if err != nil {
		return f, err
	}
	looks, err := readLooks(filepath.Join(dir, "looks.txt"))
	if err != nil {
		return f, err
	}
	return f, readRows(filepath.Join(dir, "det.txt"), f.frames, func(frame *crowd.Frame, _ int, box postprocess.Box, score float64) {
		found := postprocess.Detection{Box: box, Score: float32(score)}
		if len(looks) > 0 {
			found.Detail, looks = looks[0], looks[1:]
		}
		frame.Detections = append(frame.Detections, found)
	})
}

// readLooks takes the vectors of a video's boxes, as infer --json has them, one a line and an empty line where there is none. A video may
// have no such file.
func readLooks(path string) (all []*postprocess.Detail, err error) {
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

// readInformation takes the rate, the number of images and their size.
func (f *video) readInformation(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	frames := 0
	for lines := bufio.NewScanner(file); lines.Scan(); {
		key, value, _ := strings.Cut(lines.Text(), "=")
		switch key {
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
	f.frames = make([]crowd.Frame, frames)
	return nil
}

// readRows takes the rows of a file of the MOTChallenge to their frames.
func readRows(path string, frames []crowd.Frame, take func(frame *crowd.Frame, id int, box postprocess.Box, score float64)) error {
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
			return fmt.Errorf("%s: a row of %d columns", path, len(row))
		}
		for i := range v {
			if v[i], err = strconv.ParseFloat(row[i], 64); err != nil {
				return err
			}
		}
		frame := int(v[0]) - 1
		if frame < 0 || frame >= len(frames) {
			return fmt.Errorf("%s: image %d of %d", path, frame+1, len(frames))
		}
		left, top := float32(v[2]), float32(v[3])
		take(&frames[frame], int(v[1]), postprocess.Box{X1: left, Y1: top, X2: left + float32(v[4]), Y2: top + float32(v[5])}, v[6])
	}
}

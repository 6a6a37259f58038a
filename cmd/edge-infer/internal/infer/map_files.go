package infer

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/png"
	"math"
	"os"
	"path/filepath"

	captured "github.com/edge-infer/edge-infer/capture/source"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/internal/atomicfile"
	"github.com/edge-infer/edge-infer/postprocess"
)

// mapFiles writes segmentation maps as grey PNG files of class numbers, 255 for none, and depth maps as NPY files of float32, both in the
// size of the image and in the form that validate reads.
type mapFiles struct {
	dir   string
	names names
}

func (m *mapFiles) path(source string, frame int, suffix string) string {
	if captured.IsImage(source) {
		return filepath.Join(m.dir, m.names.of(source, "")+suffix)
	}
	return filepath.Join(m.dir, fmt.Sprintf("%s_%06d%s", m.names.ofVideo(source), frame, suffix))
}

func (m *mapFiles) add(seen *Seen) error {
	switch {
	case seen.Semantic == nil && seen.Depth == nil:
		return errors.New("--format map is for semantic segmentation and depth networks, this one detects objects")
	case seen.Depth != nil:
		return write(m.path(seen.File, seen.Frame, ".npy"), depthsOf(seen.denseMap, seen.Width, seen.Height))
	}
	grey := image.NewGray(image.Rect(0, 0, seen.Width, seen.Height))
	for y := range seen.Height {
		for x := range seen.Width {
			class := uint8(postprocess.NoClass)
			if seen.denseMap.Contains(x, y) {
				column, row := seen.denseMap.CellAt(x, y)
				class = seen.denseMap.Classes[row*seen.denseMap.Width+column]
			}
			grey.Pix[y*grey.Stride+x] = class
		}
	}
	var file bytes.Buffer
	if err := png.Encode(&file, grey); err != nil {
		return fmt.Errorf("output: %w", err)
	}
	return write(m.path(seen.File, seen.Frame, ".png"), file.Bytes())
}

// depthsOf encodes an NPY file with a depth for each pixel, NaN outside the input of the network.
func depthsOf(m *postprocess.DenseMap, width, height int) []byte {
	t := engine.Tensor{Type: engine.Float32, Shape: []int64{int64(height), int64(width)}}
	for y := range height {
		for x := range width {
			depth := float32(math.NaN())
			if m.Contains(x, y) {
				depth = m.DepthAt(float32(x), float32(y))
			}
			t.Data = binary.LittleEndian.AppendUint32(t.Data, math.Float32bits(depth))
		}
	}
	var file bytes.Buffer
	_ = engine.WriteNPY(&file, &t) // into memory
	return file.Bytes()
}

func write(path string, data []byte) error {
	if err := atomicfile.Write(path, data, 0o644); err != nil {
		return fmt.Errorf("output: %w", err)
	}
	return nil
}

func (m *mapFiles) has(path string) bool {
	if !captured.IsImage(path) { // the number of frames is unknown
		return false
	}
	for _, suffix := range []string{".png", ".npy"} {
		if _, err := os.Stat(m.path(path, 0, suffix)); err == nil {
			return true
		}
	}
	return false
}

func (*mapFiles) close(bool) error { return nil }

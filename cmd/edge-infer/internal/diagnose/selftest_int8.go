package diagnose

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/engine"
)

// int8 quantizes the model on images of the demo as the command quantize does, and tests the result.
func (s *Selftest) int8(ctx context.Context) []Check {
	if skipped := s.absent(networkJob); skipped != nil {
		return skipped
	}
	dir, err := os.MkdirTemp("", "edge-infer-selftest-")
	if err != nil {
		return []Check{fail("", "", "%v", err)}
	}
	defer os.RemoveAll(dir)
	s.step.Note("quantizing the model")
	model, err := s.quantize(ctx, dir)
	if err != nil {
		return []Check{fail("", "", "%v", err)}
	}
	r := &request{Job: networkJob, Precision: string(engine.INT8)}
	r.configure(s.Config)
	r.Model.Path = model
	r.Reference = &s.Config.Model
	return s.run(ctx, r)
}

// quantize writes an INT8 model to a directory and returns its path.
func (s *Selftest) quantize(ctx context.Context, dir string) (string, error) {
	images, err := demoImages()
	if err != nil {
		return "", err
	}
	for i := range images {
		if err := writePNG(filepath.Join(dir, fmt.Sprintf("%02d.png", i)), &images[i]); err != nil {
			return "", err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	out := filepath.Join(dir, "int8.onnx")
	arguments := []string{"quantize"}
	if path := s.Config.Model.Path; path != "" && path != config.Default().Model.Path && path != "demo" {
		arguments = append(arguments, path)
	}
	arguments = append(arguments, "--images", dir, "--gate", "0", "--target", "tensorrt", "--output", out)
	text, err := exec.CommandContext(ctx, s.program, arguments...).CombinedOutput()
	if err != nil {
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		return "", fmt.Errorf("quantize: %s", lines[len(lines)-1])
	}
	return out, nil
}

// writePNG writes a BGR image.
func writePNG(path string, im *engine.Image) (err error) {
	pixels := image.NewRGBA(image.Rect(0, 0, im.Width, im.Height))
	for y := range im.Height {
		for x := range im.Width {
			pixel := im.Data[y*im.Stride+3*x:]
			pixels.SetRGBA(x, y, color.RGBA{R: pixel[2], G: pixel[1], B: pixel[0], A: 255})
		}
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	buffered := bufio.NewWriter(file)
	encoder := png.Encoder{CompressionLevel: png.BestSpeed}
	return errors.Join(encoder.Encode(buffered, pixels), buffered.Flush())
}

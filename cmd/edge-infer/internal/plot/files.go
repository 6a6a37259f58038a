// Package plot draws charts and confusion matrices as SVG and PNG files.
package plot

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"

	"github.com/go-analyze/charts/chartdraw"

	"github.com/edge-infer/edge-infer/internal/atomicfile"
)

// Figure is a drawing with the name of its files, which have no suffix yet.
type Figure struct {
	Name    string
	Drawing Drawing
}

// Drawing is a Chart or a Matrix.
type Drawing interface {
	render(f format, out io.Writer) error
}

// format is a kind of file. A PNG has twice as many pixels as an SVG has units, for sharp text.
type format struct {
	suffix  string
	scale   int
	provide chartdraw.RendererProvider
}

func formats() []format {
	return []format{{".svg", 1, chartdraw.SVG}, {".png", 2, chartdraw.PNG}}
}

// Check creates the directory if it is missing, and returns an error if Write could not create files in it.
func Check(dir string) error {
	if err := atomicfile.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("--plots: %w", err)
	}
	if err := atomicfile.Check(filepath.Join(dir, "plot.svg")); err != nil {
		return fmt.Errorf("--plots: %w", err)
	}
	return nil
}

// Write writes each figure into the directory as SVG and PNG.
func Write(dir string, figures []Figure) error {
	for _, figure := range figures {
		for _, f := range formats() {
			var file bytes.Buffer
			if err := figure.Drawing.render(f, &file); err != nil {
				return fmt.Errorf("--plots: %s: %w", figure.Name, err)
			}
			path := filepath.Join(dir, figure.Name+f.suffix)
			if err := atomicfile.Write(path, file.Bytes(), 0o644); err != nil {
				return fmt.Errorf("--plots: %s: %w", path, err)
			}
		}
	}
	return nil
}

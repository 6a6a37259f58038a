package accuracy

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/plot"
	"github.com/edge-infer/edge-infer/engine/atomicfile"
)

// figure is a part of what is drawn, and the file it gets in a directory.
type figure struct {
	name   string
	panels []plot.Panel
}

// drawsOneFile reports whether a path names one file for all figures; else it is a directory for each of them in both formats.
func drawsOneFile(path string) bool {
	info, err := os.Stat(path)
	return filepath.Ext(path) != "" && (err != nil || !info.IsDir())
}

// checkFigures finds what is wrong with the place of the figures before any work.
func checkFigures(path string) error {
	if drawsOneFile(path) {
		if err := plot.CheckPath(path); err != nil {
			return config.Usagef("--plot: %w", err)
		}
		return atomicfile.Check(path)
	}
	if err := os.MkdirAll(path, 0o755); err != nil {
		return fmt.Errorf("plot: %w", err)
	}
	return atomicfile.Check(filepath.Join(path, "figure"))
}

// writeFigures draws the figures beside each other into one file, or each as SVG and PNG into a directory.
func writeFigures(path, title string, figures []figure) error {
	if drawsOneFile(path) {
		all := &plot.Figure{Title: title}
		for _, f := range figures {
			all.Panels = append(all.Panels, f.panels...)
		}
		return writeFigure(path, all)
	}
	for _, f := range figures {
		for _, format := range plot.Formats() {
			if err := writeFigure(filepath.Join(path, f.name+format), &plot.Figure{Title: title, Panels: f.panels}); err != nil {
				return err
			}
		}
	}
	return nil
}

func writeFigure(path string, f *plot.Figure) error {
	drawing, err := f.Encode(path)
	if err != nil {
		return err
	}
	if err := atomicfile.Write(path, drawing, 0o644); err != nil {
		return fmt.Errorf("plot: %w", err)
	}
	return nil
}

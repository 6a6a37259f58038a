package infer

import (
	"slices"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/annotate"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
)

// maxReaders limits the goroutines that decode; each holds an image.
const maxReaders = 1024

// Check validates the settings of both jobs, exactly one of which must be requested. p.Config is the configuration of both.
func Check(p *Images, t *Tensors) error {
	if err := p.Record.Check(); err != nil {
		return err
	}
	if !slices.Contains([]string{annotate.Auto, annotate.MP4, annotate.AVI}, p.Video) {
		return config.Usagef("--video %q must be auto, mp4 or avi", p.Video)
	}
	switch {
	case p.Readers < 0 || p.Readers > maxReaders:
		return config.Usagef("--readers %d must be 0 to %d", p.Readers, maxReaders)
	case len(p.Files) == 0 && len(t.Inputs) == 0:
		return config.Usagef("infer needs an image, a directory or a video, or --input NAME=TENSOR.npy")
	case len(p.Files) > 0 && !p.Config.HasModel():
		return config.UsageError{Err: config.ErrNoModel}
	case len(p.Files) > 0 && len(t.Inputs) > 0:
		return config.Usagef("infer takes images or --input, not both")
	case p.Resume && (p.Save == "" && p.Record.Path == "" || !p.Record.resumable()):
		return config.Usagef("--resume needs --output FILE.jsonl, --format yolo or map with a directory, or --save DIR")
	case t.Directory != "" && len(t.Inputs) == 0:
		return config.Usagef("--output-dir is for --input")
	case (p.Save != "" || p.Record.Format != "") && len(t.Inputs) > 0:
		return config.Usagef("--save, --format and --output are for images, the outputs of --input go to --output-dir")
	case !p.Config.Inference.Plain() && len(t.Inputs) > 0:
		return config.Usagef("--tile, --ensemble and --augment are for images, not for --input")
	}
	if t.Window.Sides != "" && len(t.Inputs) == 0 {
		return config.Usagef("--window is for --input; use --tile for images")
	}
	t.Window.Overlap = p.Config.Inference.Overlap
	return t.Window.check()
}

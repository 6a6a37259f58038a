package infer

import "github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"

// Check finds out which of the two jobs is asked for, and that it is one.
func Check(p *Pictures, t *Tensors) error {
	switch {
	case len(p.Files) == 0 && len(t.Inputs) == 0:
		return config.Usagef("infer needs a picture, a directory or a video, or --input NAME=TENSOR.npy")
	case len(p.Files) > 0 && len(t.Inputs) > 0:
		return config.Usagef("infer takes pictures or --input, not both")
	case p.Resume && p.Save == "":
		return config.Usagef("--resume leaves out what --save DIR holds already: name that folder")
	case t.Directory != "" && len(t.Inputs) == 0:
		return config.Usagef("--output-dir is for --input")
	case p.Save != "" && len(t.Inputs) > 0:
		return config.Usagef("--save is for pictures, the outputs of --input go to --output-dir")
	case p.Tiles.Side != 0 && len(t.Inputs) > 0:
		return config.Usagef("--tile is for pictures, not for --input")
	}
	return p.Tiles.Check()
}

package config

import (
	"errors"

	"github.com/edge-infer/edge-infer/postprocess/predict/ensemble"
	"github.com/edge-infer/edge-infer/postprocess/predict/tile"
)

// Inference holds tiles, ensemble and test-time augmentation: how images are passed to networks, and to which.
type Inference struct {
	// Tile is the side of a tile in pixels, 0 for the whole image only; Overlap is the overlap of neighbouring tiles as a share of the side.
	Tile      int     `yaml:"tile"`
	Overlap   float64 `yaml:"overlap"`
	TileMerge string  `yaml:"tile_merge"`
	// Ensemble lists additional networks. Weights are the weights of all networks, the main model first.
	Ensemble []string  `yaml:"ensemble"`
	Weights  []float64 `yaml:"weights"`
	// Augment lists the augmented views of each network in the syntax of ensemble.ParseView.
	Augment   []string `yaml:"augment"`
	Fusion    string   `yaml:"fusion"`
	FusionIoU float64  `yaml:"fusion_iou"`
}

// DefaultInference runs one network on the whole image.
func DefaultInference() Inference {
	return Inference{Overlap: 0.2, TileMerge: string(ensemble.NMS), Fusion: string(ensemble.WeightedBoxes), FusionIoU: ensemble.DefaultIoU}
}

// Plain reports whether one network runs once, on the whole image.
func (l *Inference) Plain() bool { return l.Tile == 0 && len(l.Ensemble) == 0 && len(l.Augment) == 0 }

// ValidateTile returns an error unless Tile is 0 or a permitted tile side in pixels.
func (l *Inference) ValidateTile() error {
	if l.Tile == 0 {
		return nil
	}
	return tile.Validate(l.Tile, 0)
}

// ValidateOverlap returns an error unless Overlap is a permitted share of the tile side.
func (l *Inference) ValidateOverlap() error { return tile.Validate(tile.MinSide, l.Overlap) }

// ValidateWeights returns an error unless there is no weight or one for each network of the ensemble.
func (l *Inference) ValidateWeights() error {
	if len(l.Weights) > 0 && len(l.Ensemble) == 0 {
		return errors.New("they are those of the networks of --ensemble")
	}
	f := l.Fuser()
	f.Method = ""
	return f.Open(1 + len(l.Ensemble))
}

// Fuser returns the fusion of the ensemble's detections.
func (l *Inference) Fuser() ensemble.Fuser {
	f := ensemble.Fuser{Method: ensemble.Method(l.Fusion), IoU: float32(l.FusionIoU)}
	for _, w := range l.Weights {
		f.Weights = append(f.Weights, float32(w))
	}
	return f
}

// ValidateAugment returns an error if a view of Augment is unknown.
func (l *Inference) ValidateAugment() error {
	_, err := l.Views()
	return err
}

// Views parses Augment.
func (l *Inference) Views() (all []ensemble.View, err error) {
	for _, text := range l.Augment {
		one, err := ensemble.ParseView(text)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

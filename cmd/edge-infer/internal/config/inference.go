package config

import (
	"errors"

	"github.com/edge-infer/edge-infer/postprocess/predict/ensemble"
	"github.com/edge-infer/edge-infer/postprocess/predict/tile"
)

// Inference is how an image is shown to networks, and to how many.
type Inference struct {
	// Tile is the side in pixels of the parts that a large image is cut into, 0 for none; Overlap is the share of it that neighbours see
	// too.
	Tile      int     `yaml:"tile"`
	Overlap   float64 `yaml:"overlap"`
	TileMerge string  `yaml:"tile_merge"`
	// Ensemble are additional networks; Weights are those of all networks, the model first.
	Ensemble []string  `yaml:"ensemble"`
	Weights  []float64 `yaml:"weights"`
	// Augment are further looks of each network, as ensemble.Parse reads them.
	Augment   []string `yaml:"augment"`
	Fusion    string   `yaml:"fusion"`
	FusionIoU float64  `yaml:"fusion_iou"`
}

// DefaultInference is one network that sees an image whole.
func DefaultInference() Inference {
	return Inference{Overlap: 0.2, TileMerge: string(ensemble.NMS), Fusion: string(ensemble.WeightedBoxes), FusionIoU: ensemble.DefaultIoU}
}

// Plain reports whether an image is seen once, whole, by one network.
func (l *Inference) Plain() bool { return l.Tile == 0 && len(l.Ensemble) == 0 && len(l.Augment) == 0 }

// ValidateTile validates Tile; the methods below validate other fields.
func (l *Inference) ValidateTile() error {
	if l.Tile == 0 {
		return nil
	}
	return tile.Validate(l.Tile, 0)
}

// ValidateOverlap is of Overlap.
func (l *Inference) ValidateOverlap() error { return tile.Validate(tile.MinSide, l.Overlap) }

// ValidateWeights is of Weights.
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

// ValidateAugment is of Augment.
func (l *Inference) ValidateAugment() error {
	_, err := l.Views()
	return err
}

// Views reads Augment.
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

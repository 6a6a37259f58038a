// Package look is what a configuration says of how images are shown to networks.
package look

import (
	"errors"

	"github.com/edge-infer/edge-infer/postprocess/predict/augment"
	"github.com/edge-infer/edge-infer/postprocess/predict/fuse"
	"github.com/edge-infer/edge-infer/postprocess/predict/tile"
)

// Look is how an image is shown to networks, and to how many.
type Look struct {
	// Tile is the side in pixels of the parts that a large image is cut into, 0 for none; Overlap is the share of it that neighbours see
	// too.
	Tile    int     `yaml:"tile"`
	Overlap float64 `yaml:"overlap"`
	Merge   string  `yaml:"merge"` // of what tiles see
	// Ensemble are networks that look beside the model, Weights those of all of them, the model first.
	Ensemble []string  `yaml:"ensemble"`
	Weights  []float64 `yaml:"weights"`
	// Augment are further looks of each network, as augment.Parse reads them.
	Augment   []string `yaml:"augment"`
	Fusion    string   `yaml:"fusion"`
	FusionIoU float64  `yaml:"fusion_iou"`
}

// Default is one network that sees an image whole.
func Default() Look {
	return Look{Overlap: 0.2, Merge: string(fuse.Best), Fusion: string(fuse.Boxes), FusionIoU: fuse.DefaultIoU}
}

// Plain reports whether an image is seen once, whole, by one network.
func (l *Look) Plain() bool { return l.Tile == 0 && len(l.Ensemble) == 0 && len(l.Augment) == 0 }

// CheckTile finds what is wrong with Tile, as the others do with theirs.
func (l *Look) CheckTile() error {
	if l.Tile == 0 {
		return nil
	}
	return tile.Check(l.Tile, 0)
}

// CheckOverlap is of Overlap.
func (l *Look) CheckOverlap() error { return tile.Check(tile.LeastSide, l.Overlap) }

// CheckWeights is of Weights.
func (l *Look) CheckWeights() error {
	if len(l.Weights) > 0 && len(l.Ensemble) == 0 {
		return errors.New("they are those of the networks of --ensemble")
	}
	f := l.Fuser()
	f.Method = ""
	return f.Open(1 + len(l.Ensemble))
}

// Fuser puts together what the networks of the ensemble find.
func (l *Look) Fuser() fuse.Fuser {
	f := fuse.Fuser{Method: fuse.Method(l.Fusion), IoU: float32(l.FusionIoU)}
	for _, w := range l.Weights {
		f.Weights = append(f.Weights, float32(w))
	}
	return f
}

// CheckAugment is of Augment.
func (l *Look) CheckAugment() error {
	_, err := l.Looks()
	return err
}

// Looks reads Augment.
func (l *Look) Looks() (all []augment.Look, err error) {
	for _, text := range l.Augment {
		one, err := augment.Parse(text)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

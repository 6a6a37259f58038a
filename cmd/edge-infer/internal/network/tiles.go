package network

import (
	"github.com/spf13/pflag"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/postprocess/predict"
	"github.com/edge-infer/edge-infer/postprocess/predict/tile"
)

// Tiles say how large pictures are cut for a network that would not see small objects on them. The zero value leaves pictures whole.
type Tiles struct {
	Side    int     `json:"side"`    // in pixels; 0 for none
	Overlap float64 `json:"overlap"` // share of the side
}

// Flags are the tiles' place on a command line.
func (t *Tiles) Flags(flags *pflag.FlagSet) {
	flags.IntVar(&t.Side, "tile", 0, "look at large pictures in tiles of so many pixels, and whole, for small objects; 0: whole only")
	flags.Float64Var(&t.Overlap, "overlap", 0.2, "share of a tile that its neighbour sees too: the largest objects that must come out whole")
}

// Check finds what is wrong with the flags before any work.
func (t *Tiles) Check() error {
	if t.Side == 0 {
		return nil
	}
	if err := tile.Check(t.Side, t.Overlap); err != nil {
		return config.Usagef("--tile: %v", err)
	}
	return nil
}

// Over is a predictor that looks at tiles, where there are to be any. An error leaves p open.
func (t *Tiles) Over(p predict.Predictor, d predict.Decoding) (predict.Predictor, error) {
	if t.Side == 0 {
		return p, nil
	}
	tiled := &tile.Tiled{Predictor: p, Tile: t.Side, Overlap: t.Overlap, Whole: true, Limit: d.Limit}
	return tiled, tiled.Open()
}

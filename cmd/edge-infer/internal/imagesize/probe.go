// Package imagesize finds out how large the images of cameras and files are before the network is opened that sees them: one that leaves
// its size open wastes least in their shape.
package imagesize

import (
	"context"
	"slices"
	"time"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/capture/source"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/process"
	"github.com/edge-infer/edge-infer/engine"
)

// Probe takes one image of every source, all at the same time, and returns their sizes in order: zero if none arrived within the limit. A
// decoder that hangs is abandoned.
func Probe(ctx context.Context, uris []string, limit time.Duration) []engine.Size {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	type answer struct {
		index int
		size  engine.Size
	}
	answers := make(chan answer, len(uris))
	for i, uri := range uris {
		go func() { answers <- answer{i, look(ctx, uri, limit)} }()
	}
	sizes := make([]engine.Size, len(uris))
	for range uris {
		select {
		case a := <-answers:
			sizes[a.index] = a.size
		case <-ctx.Done():
			return sizes
		}
	}
	return sizes
}

// filesLooked is the number of files probed to fit a network's input size.
const filesLooked = 16

// ProbeFiles returns the sizes of images sampled evenly from the files, or that of a tile if tile is above 0, in pixels. Unreadable files
// are skipped here; opening them later reports the error.
func ProbeFiles(ctx context.Context, files []string, tile int) []engine.Size {
	if tile > 0 {
		return []engine.Size{{Width: tile, Height: tile}}
	}
	var some []string
	for i := range min(len(files), filesLooked) {
		some = append(some, files[i*len(files)/min(len(files), filesLooked)])
	}
	return slices.DeleteFunc(Probe(ctx, some, patience), func(s engine.Size) bool { return s.Width == 0 })
}

// look takes one image. Errors are reported later, when the source is opened for use.
func look(ctx context.Context, uri string, limit time.Duration) engine.Size {
	opened, err := source.Open(ctx, uri, capture.Options{
		EveryFrame: true, OpenTimeout: limit, ReadTimeout: limit, Child: process.CameraChild(),
	})
	if err != nil {
		return engine.Size{}
	}
	defer opened.Close()
	var pool capture.Pool
	defer pool.Close()
	frame, err := opened.Next(&pool)
	if err != nil {
		return engine.Size{}
	}
	defer frame.Release()
	return engine.Size{Width: frame.Width, Height: frame.Height}
}

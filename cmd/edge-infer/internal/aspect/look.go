// Package aspect finds out how large the pictures of cameras and files are before the network is opened that sees them: one that leaves its
// size open wastes least in their shape.
package aspect

import (
	"context"
	"time"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/capture/source"
	"github.com/edge-infer/edge-infer/engine"
)

// Look takes one picture of every source that the URIs name, all at the same time, and gives their sizes in that order: a zero one where
// none came within the limit. A decoder that hangs is left behind, as a camera would leave it.
func Look(ctx context.Context, uris []string, limit time.Duration) []engine.Size {
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

// look takes one picture. What is wrong with a source is told when it is opened to be used.
func look(ctx context.Context, uri string, limit time.Duration) engine.Size {
	opened, err := source.Open(ctx, uri, capture.Options{Every: true, OpenTimeout: limit, ReadTimeout: limit})
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

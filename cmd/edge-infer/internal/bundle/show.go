package bundle

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/catalogue"
)

// Show describes a bundle by its manifest. With keys a bundle that none of them signed is an error.
type Show struct {
	Source
	Keys Keys
	// Contents receives all files as well, and checks their digests.
	Contents bool
}

// Run reads the bundle. What it receives from elsewhere is in a temporary directory, which it removes.
func (s *Show) Run(ctx context.Context) (*Summary, error) {
	dir, err := os.MkdirTemp("", "edge-infer-bundle-")
	if err != nil {
		return nil, err
	}
	summary, err := s.run(ctx, catalogue.Store{Dir: dir})
	if err != nil {
		err = fmt.Errorf("bundle %s: %w", s.Location, err)
	}
	return summary, errors.Join(err, os.RemoveAll(dir))
}

func (s *Show) run(ctx context.Context, store catalogue.Store) (*Summary, error) {
	b, err := openBundle(ctx, &s.Source, store, s.Keys)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	summary := b.summary(s.Location)
	if !s.Contents {
		return &summary, nil
	}
	for at := range b.Files {
		part, _, err := b.receiveFile(ctx, store, &b.Files[at])
		if err != nil {
			return nil, err
		}
		if err := errors.Join(part.Remove(), part.Close()); err != nil {
			return nil, err
		}
	}
	summary.Complete = true
	return &summary, nil
}

package update

import (
	"context"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/bundle"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/catalogue"
)

// outcomePause is the time between two looks at what a daemon has written.
const outcomePause = time.Second

// Wait waits until the daemon with a state directory has tried a bundle, and returns how it has fared: also if that was before. The error
// is that of ctx, or that the daemon's file cannot be read.
func Wait(ctx context.Context, state string, store catalogue.Store, b *bundle.Info) (*Outcome, error) {
	for {
		if have := bundle.Installed(store, b.Name); have != nil && have.Digest == b.Digest {
			return &Outcome{Digest: b.Digest, Model: b.Name, Version: b.Version}, nil
		}
		last, err := ReadOutcome(state)
		if err != nil {
			return nil, err
		}
		if last != nil && last.Digest == b.Digest && !last.Installed() {
			return last, nil
		}
		if err := sleep(ctx, outcomePause); err != nil {
			return nil, context.Cause(ctx)
		}
	}
}

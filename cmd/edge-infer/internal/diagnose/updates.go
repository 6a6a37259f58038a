package diagnose

import (
	"context"
	"fmt"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/bundle"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/hawkbit"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/update"
	"github.com/edge-infer/edge-infer/internal/boundedfile"
)

// updates checks the keys of model updates, asks the update server, and says how the newest bundle has fared.
func (d *Doctor) updates(ctx context.Context) (checks []Check) {
	const name = "model updates"
	b, h := &d.Config.Bundle, d.Config.HawkBit
	if b.From == "" && h.URL == "" {
		return nil
	}
	if h.URL != "" {
		ctx, cancel := context.WithTimeout(ctx, d.Timeout)
		defer cancel()
		if err := hawkbit.Probe(ctx, h, d.Config.Name); err != nil {
			checks = append(checks, warn("update server", "check hawkbit.url and hawkbit.token_file; the model runs on", "%v", err))
		} else {
			checks = append(checks, ok("update server", "it knows this device"))
		}
	}
	if _, err := bundle.ReadKeys(b.Keys); err != nil {
		return append(checks, fail(name, "mend bundle.keys", "%v", err))
	}
	last, err := update.ReadOutcome(d.Config.State)
	switch {
	case err != nil:
		return append(checks, warn(name, "remove the file", "%v", err))
	case last == nil:
		return append(checks, ok(name, "no newer bundle was tried on this device"))
	case !last.Installed():
		return append(checks, warn(name, "publish a better version; the model before runs on", "%s: %s", last.Model, last.Text()))
	}
	return append(checks, ok(name, "%s: %s", last.Model, last.Text()))
}

// updates checks the keys of model updates and the token for the update server.
func (p *Preflight) updates() (mistakes []error) {
	b, h := &p.Config.Bundle, &p.Config.HawkBit
	if b.From == "" && h.URL == "" {
		return nil
	}
	if _, err := bundle.ReadKeys(b.Keys); err != nil {
		mistakes = append(mistakes, fmt.Errorf("bundle.keys: %w", err))
	}
	if h.URL != "" && h.TokenFile != "" {
		if _, err := boundedfile.Read(h.TokenFile, boundedfile.Small); err != nil {
			mistakes = append(mistakes, fmt.Errorf("hawkbit.token_file: %w", err))
		}
	}
	return mistakes
}

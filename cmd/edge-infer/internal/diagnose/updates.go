package diagnose

import (
	"fmt"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/bundle"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/update"
)

// updates checks the keys of model updates and says how the newest bundle has fared.
func (d *Doctor) updates() []Check {
	const name = "model updates"
	b := &d.Config.Bundle
	if b.From == "" {
		return nil
	}
	if _, err := bundle.ReadKeys(b.Keys); err != nil {
		return []Check{fail(name, "mend bundle.keys", "%v", err)}
	}
	last, err := update.ReadOutcome(d.Config.State)
	switch {
	case err != nil:
		return []Check{warn(name, "remove the file", "%v", err)}
	case last == nil:
		return []Check{ok(name, "no newer bundle was tried on this device")}
	case !last.Installed():
		return []Check{warn(name, "publish a better version; the model before runs on", "%s: %s", last.Model, last.Text())}
	}
	return []Check{ok(name, "%s: %s", last.Model, last.Text())}
}

// bundle checks the keys of model updates.
func (p *Preflight) bundle() []error {
	if p.Config.Bundle.From == "" {
		return nil
	}
	if _, err := bundle.ReadKeys(p.Config.Bundle.Keys); err != nil {
		return []error{fmt.Errorf("bundle.keys: %w", err)}
	}
	return nil
}

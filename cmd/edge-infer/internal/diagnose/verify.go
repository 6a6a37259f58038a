package diagnose

import (
	"context"
	"fmt"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/site"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/verify"
)

// verify checks the signing secret of the verification service and that it accepts connections. It asks nothing.
func (d *Doctor) verify(ctx context.Context) []Check {
	const name = "verify"
	gate := verify.New(site.ResolveOutputs(d.Config))
	if gate == nil {
		return nil
	}
	if err := gate.Endpoint.CheckSecret(); err != nil {
		return []Check{fail(name, `write one into the file of verify.secret_file: echo "whsec_$(openssl rand -base64 32)"`, "%v", err)}
	}
	ctx, cancel := context.WithTimeout(ctx, d.Timeout)
	defer cancel()
	if err := gate.Endpoint.Reach(ctx); err != nil {
		what := "published unverified"
		if gate.Drop {
			what = "dropped"
		}
		return []Check{warn(name, "check verify.url; meanwhile events are "+what, "%v", err)}
	}
	return []Check{ok(name, "the service accepts connections")}
}

// verify checks that the signing secret can be read and used.
func (p *Preflight) verify() []error {
	gate := verify.New(site.ResolveOutputs(p.Config))
	if gate == nil {
		return nil
	}
	if err := gate.Endpoint.CheckSecret(); err != nil {
		return []error{fmt.Errorf("verify: %w", err)}
	}
	return nil
}

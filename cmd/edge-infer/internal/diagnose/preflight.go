package diagnose

import (
	"context"
	"reflect"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/site"
	"github.com/edge-infer/edge-infer/mqtt/command"
	"github.com/edge-infer/edge-infer/postprocess/zone"
)

// Preflight finds the mistakes in a valid configuration that would keep a run from starting, before a running one is stopped: it opens or
// checks everything that the run would open.
type Preflight struct {
	Config *config.Config
	// Running is the configuration in force in this process, nil for none: what it has open is no mistake, and a network that is the same is
	// not opened again. Names returns the class names of a group's model that is open; nil where objects are not tracked.
	Running *config.Config
	Names   func(*site.Group) zone.Names
	// Remote are the values that were set remotely, by camera.
	Remote map[string]command.Kept
	// Renewed is set if the networks' files have changed since.
	Renewed bool
	// Program is this program with Command. Its process opens the networks, because they may crash, and to return their memory.
	Program []string
}

// Run returns all mistakes, in the order of the configuration's sections. It ends with ctx: reads of files that have begun take at most
// their limit.
func (p *Preflight) Run(ctx context.Context) (mistakes []error) {
	if err := p.Config.CheckModel(); err != nil {
		return []error{err}
	}
	if p.Running != nil && !p.Renewed && p.sameNetworks() {
		next := site.Resolve(p.Config, p.Remote)
		for i := range next.Groups {
			if p.Names != nil {
				mistakes = append(mistakes, zones(next.Groups[i].Cameras, p.Names(&next.Groups[i]))...)
			}
		}
	} else {
		mistakes = p.networks(ctx)
	}
	for _, part := range []func() []error{p.cameras, p.mqtt, p.directories, p.webhooks, p.verify, p.updates, p.web} {
		if err := ctx.Err(); err != nil {
			return []error{err}
		}
		mistakes = append(mistakes, part()...)
	}
	return mistakes
}

// sameNetworks reports whether the configuration opens the networks that run already, in the same way.
func (p *Preflight) sameNetworks() bool {
	if !reflect.DeepEqual(p.Running.Detect, p.Config.Detect) {
		return false
	}
	changes := site.Diff(site.Resolve(p.Running, p.Remote), site.Resolve(p.Config, p.Remote))
	return changes.Action() < site.Restart
}

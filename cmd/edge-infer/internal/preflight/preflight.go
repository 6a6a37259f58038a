// Package preflight finds what would keep a run from starting before anything that runs is given up for it: everything that the run would
// open is opened or checked.
package preflight

import (
	"context"
	"reflect"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/site"
	"github.com/edge-infer/edge-infer/mqtt/command"
	"github.com/edge-infer/edge-infer/postprocess/zone"
)

// Check is one look at a configuration that is valid in itself.
type Check struct {
	Config *config.Config
	// Running is the configuration in force in this process, nil for none: what it has open is no mistake, and a network that is the same is
	// not opened again. Names returns the class names of a group's model that is open; nil where objects are not tracked.
	Running *config.Config
	Names   func(*site.Group) zone.Names
	// Remote are the values that were set remotely, by camera.
	Remote map[string]command.Kept
	// Renewed says that the networks' files have changed since.
	Renewed bool
	// Program is this program with its hidden Command, in whose process the network is opened: it may crash, and its memory comes back.
	Program []string
}

// Run gives every mistake, in the order of the configuration's sections.
func (c *Check) Run(ctx context.Context) (mistakes []error) {
	if c.Running != nil && !c.Renewed && c.sameNetworks() {
		next := site.Resolve(c.Config, c.Remote)
		for i := range next.Groups {
			if c.Names != nil {
				mistakes = append(mistakes, zones(next.Groups[i].Cameras, c.Names(&next.Groups[i]))...)
			}
		}
	} else {
		mistakes = c.network(ctx)
	}
	mistakes = append(mistakes, c.mqtt()...)
	mistakes = append(mistakes, c.snapshots()...)
	return append(mistakes, c.web()...)
}

// sameNetworks reports whether the configuration opens the networks that run already, in the same way.
func (c *Check) sameNetworks() bool {
	if !reflect.DeepEqual(c.Running.Detect, c.Config.Detect) {
		return false
	}
	changes := site.Diff(site.Resolve(c.Running, c.Remote), site.Resolve(c.Config, c.Remote))
	return changes.Action() < site.Restart
}

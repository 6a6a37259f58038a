// Package preflight finds what would keep a run from starting before anything that runs is given up for it: everything that the run would
// open is opened or checked.
package preflight

import (
	"context"
	"reflect"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
)

// Check is one look at a configuration that is valid in itself.
type Check struct {
	Config *config.Config
	// Running is the configuration in force in this process, nil for none: what it has open is no mistake, and a network that is the same is
	// not opened again. Labels are those of its network.
	Running *config.Config
	Labels  []string
	// Renewed says that the network's files have changed since.
	Renewed bool
	// Program is this program with its hidden Command, in whose process the network is opened: it may crash, and its memory comes back.
	Program []string
}

// Run gives every mistake, in the order of the configuration's sections.
func (c *Check) Run(ctx context.Context) (mistakes []error) {
	if c.Running != nil && !c.Renewed && reflect.DeepEqual(network(c.Running), network(c.Config)) {
		mistakes = zones(c.Config.Cameras, c.Labels)
	} else {
		mistakes = c.network(ctx)
	}
	mistakes = append(mistakes, c.mqtt()...)
	mistakes = append(mistakes, c.snapshots()...)
	return append(mistakes, c.web()...)
}

// network is what decides whether the network can be opened.
func network(c *config.Config) request {
	return request{Model: c.Model, Engine: c.Engine, Remote: c.Remote, Detect: c.Detect, Cascade: c.Cascade}
}

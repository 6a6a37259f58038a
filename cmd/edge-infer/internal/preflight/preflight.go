// Package preflight finds what would keep a run from starting before anything that runs is given up for it: everything that the run would
// open is opened or checked.
package preflight

import (
	"context"
	"reflect"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	open "github.com/edge-infer/edge-infer/cmd/edge-infer/internal/network"
	"github.com/edge-infer/edge-infer/postprocess/zone"
)

// Check is one look at a configuration that is valid in itself.
type Check struct {
	Config *config.Config
	// Running is the configuration in force in this process, nil for none: what it has open is no mistake, and a network that is the same is
	// not opened again. Names are those of what looks at a view of network.Views; nil where objects are not tracked.
	Running *config.Config
	Names   func(view *config.Config) zone.Names
	// Renewed says that the networks' files have changed since.
	Renewed bool
	// Program is this program with its hidden Command, in whose process the network is opened: it may crash, and its memory comes back.
	Program []string
}

// Run gives every mistake, in the order of the configuration's sections.
func (c *Check) Run(ctx context.Context) (mistakes []error) {
	if c.Running != nil && !c.Renewed && reflect.DeepEqual(networks(c.Running), networks(c.Config)) {
		for _, view := range open.Views(c.Config) {
			if c.Names != nil {
				mistakes = append(mistakes, zones(view.Cameras, c.Names(view))...)
			}
		}
	} else {
		mistakes = c.network(ctx)
	}
	mistakes = append(mistakes, c.mqtt()...)
	mistakes = append(mistakes, c.snapshots()...)
	return append(mistakes, c.web()...)
}

// networks is what decides whether the networks can be opened.
func networks(c *config.Config) request {
	r := request{Model: c.Model, Engine: c.Engine, Remote: c.Remote, Detect: c.Detect, Look: c.Inference, Cascade: c.Cascade}
	for _, view := range open.Views(c) {
		r.Views = append(r.Views, looked{Model: view.Model, Look: view.Inference})
	}
	return r
}

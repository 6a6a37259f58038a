package diagnose

import (
	"context"
	"reflect"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/network"
	"github.com/edge-infer/edge-infer/postprocess/zone"
)

// Preflight finds the mistakes in a valid configuration that would keep a run from starting, before a running one is stopped: it opens or
// checks everything that the run would open.
type Preflight struct {
	Config *config.Config
	// Running is the configuration in force in this process, nil for none: its ports are not checked again, and unchanged networks are not
	// opened again. Names returns the class and keypoint names of a view of network.Views; nil if objects are not tracked.
	Running *config.Config
	Names   func(view *config.Config) zone.Names
	// Renewed is set if the files of the networks have changed.
	Renewed bool
	// Program is this program with Command. Its process opens the networks, because they may crash, and to return their memory.
	Program []string
}

// Run returns all mistakes, in the order of the configuration's sections.
func (p *Preflight) Run(ctx context.Context) (mistakes []error) {
	if p.Running != nil && !p.Renewed && reflect.DeepEqual(networksOf(p.Running), networksOf(p.Config)) {
		for _, view := range network.Views(p.Config) {
			if p.Names != nil {
				mistakes = append(mistakes, zones(view.Cameras, p.Names(view))...)
			}
		}
	} else {
		mistakes = p.networks(ctx)
	}
	mistakes = append(mistakes, p.mqtt()...)
	mistakes = append(mistakes, p.snapshots()...)
	return append(mistakes, p.web()...)
}

// networksOf returns the settings that decide whether the networks can be opened.
func networksOf(c *config.Config) *request {
	r := &request{Job: "networks", Networks: networksRequest{Inference: c.Inference, Cascade: c.Cascade}}
	r.configure(c)
	for _, v := range network.Views(c) {
		r.Networks.Views = append(r.Networks.Views, view{Model: v.Model, Inference: v.Inference})
	}
	return r
}

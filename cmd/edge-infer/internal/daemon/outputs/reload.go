package outputs

import (
	"context"
	"errors"
	"slices"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/site"
)

// output is an output as reloads see it. One goroutine at a time reloads, after Run has begun.
type output interface {
	// Compare returns what a change of settings takes: site.Keep if the output's own are the same, site.Tune if the running output takes them,
	// site.Reopen if it is closed and opened again alone, site.Restart, with the reason, if the process must start again.
	Compare(*site.OutputChange) site.Change
	// Files returns the files that the output reads when it is opened, and not again later. Empty names are ignored.
	Files(*site.Outputs) []string
	// Reload puts the next settings in force. After an error the previous ones are in force.
	Reload(context.Context, *site.OutputChange) error
}

// list returns the outputs that reloads reach, in the order in which they are reloaded. The page is last: people see it.
func (o *Outputs) list() []output {
	return []output{eventStore{o}, clips{o}, frames{o}, &o.uploads, &o.webhooks, mqttOutput{o}, pageOutput{o}}
}

// Files returns the files that the outputs read when they are opened.
func (o *Outputs) Files(settings *site.Outputs) (paths []string) {
	for _, output := range o.list() {
		for _, path := range output.Files(settings) {
			if path != "" {
				paths = append(paths, path)
			}
		}
	}
	return paths
}

// Compare returns what a change takes of each output.
func (o *Outputs) Compare(change *site.OutputChange) (all site.Changes) {
	for _, output := range o.list() {
		all = append(all, output.Compare(change))
	}
	return all
}

// Reload puts the next settings in force, which must take no restart. After an error, or if ctx ends meanwhile, those before are in force.
func (o *Outputs) Reload(ctx context.Context, change *site.OutputChange) error {
	if err := reload(ctx, o.list(), change); err != nil {
		return err
	}
	o.reloaded.Store(change.Next)
	return nil
}

// reload puts the next settings of outputs in force, in their order. After an error it takes back what it has done.
func reload(ctx context.Context, all []output, change *site.OutputChange) error {
	var done []output
	for _, output := range all {
		if output.Compare(change).Action == site.Keep {
			continue
		}
		err := ctx.Err()
		if err == nil {
			err = output.Reload(ctx, change)
		}
		if err != nil {
			for _, reloaded := range slices.Backward(done) {
				err = errors.Join(err, reloaded.Reload(context.WithoutCancel(ctx), change.Back()))
			}
			return err
		}
		done = append(done, output)
	}
	return nil
}

// inForce returns the current settings.
func (o *Outputs) inForce() *site.Outputs {
	if now := o.reloaded.Load(); now != nil {
		return now
	}
	return o.Settings
}

// unlike returns the change of an output with a section of the settings: the action if the section differs.
func unlike(name string, differs bool, action site.Action, reason string) site.Change {
	if !differs {
		return site.Change{Output: name}
	}
	return site.Change{Output: name, Action: action, Reason: reason}
}

// renewed reports whether one of an output's files has changed.
func renewed(of output, change *site.OutputChange) bool {
	return slices.ContainsFunc(of.Files(change.Next), func(path string) bool { return path != "" && change.Renewed(path) })
}

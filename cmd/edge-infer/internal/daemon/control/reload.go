package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/diagnose"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/network"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/process"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/site"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/state"
)

// filePause is the interval between checks of the configuration file.
const filePause = 2 * time.Second

// Reloads reads the configuration again on SIGHUP, on an MQTT command and when the file has changed, until ctx ends. What was read is
// checked and put in force in the background, so that a later reload replaces one that takes long. Afterwards it returns unused memory to
// the system.
func (c *Control) Reloads(ctx context.Context, hangup <-chan os.Signal) {
	var background sync.WaitGroup
	defer background.Wait()
	ticker := time.NewTicker(filePause)
	defer ticker.Stop()
	settled := time.NewTimer(process.SettleTime)
	defer settled.Stop()
	written := c.read // the files at the last check: one that is still being written is left alone
	newest := &reload{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-settled.C:
			process.ReleaseMemory()
			continue
		case end := <-newest.end:
			if end.restart {
				return
			}
			c.conclude(ctx, end.err)
			settled.Reset(process.SettleTime)
			c.Run.Reloading(false)
			newest = &reload{}
			continue
		case <-hangup:
		case <-c.asked:
		case <-ticker.C:
			now := ConfigurationFiles(c.Settings)
			complete := maps.Equal(now, written)
			written = now
			if maps.Equal(now, c.read) || !complete {
				continue
			}
		}
		c.read = ConfigurationFiles(c.Settings)
		c.Run.Reloading(true)
		newest = c.begin(ctx, newest, &background)
	}
}

// AskReload has the configuration read again soon.
func (c *Control) AskReload() {
	select {
	case c.asked <- struct{}{}:
	default:
	}
}

// reload is a configuration that was read, from then until it is in force or refused. The zero value is none.
type reload struct {
	config *config.Config // nil if it has an error
	files  Files          // of the networks
	output Files          // of the outputs
	cancel context.CancelFunc
	end    chan reloadEnd // receives one value
}

// reloadEnd is the result of a reload: an error changes nothing, and restart says that the end of the run was requested.
type reloadEnd struct {
	restart bool
	err     error
}

// begin reads the configuration and puts it in force in a goroutine of its own. It ends the reload before, unless that is still putting the
// same configuration in force: signals that follow each other quickly would keep every one from getting anywhere.
func (c *Control) begin(ctx context.Context, before *reload, background *sync.WaitGroup) *reload {
	next, err := c.Load()
	r := &reload{config: next, end: make(chan reloadEnd, 1)}
	if err == nil {
		r.files, r.output = c.filesOf(next)
	}
	if before.config != nil {
		if err == nil && r.files.same(before.files) && r.output.same(before.output) && reflect.DeepEqual(next, before.config) {
			return before
		}
		c.Logger.Info("a later reload replaces one that has not ended")
		before.cancel()
	}
	if err != nil {
		r.config = nil
		r.end <- reloadEnd{err: err}
		return r
	}
	ctx, r.cancel = context.WithCancel(ctx)
	background.Go(func() {
		defer r.cancel()
		restart, err := c.renew(ctx, r)
		r.end <- reloadEnd{restart, err}
	})
	return r
}

// conclude records and logs how a reload has ended.
func (c *Control) conclude(ctx context.Context, err error) {
	c.reloaded.Store(&state.Reload{At: time.Now(), Err: err})
	if err != nil && ctx.Err() == nil {
		c.Logger.Error("configuration kept as it is", "error", err)
	}
}

// renew puts a changed configuration in force and reports whether that requested a restart of the program. A configuration with an error
// changes nothing: everything that a restart would open is checked first.
func (c *Control) renew(ctx context.Context, r *reload) (restart bool, err error) {
	c.changing.Lock() // a reload that is replaced changes nothing from now on
	takes := c.takes(r)
	c.changing.Unlock()
	if takes.restart == "" && takes.outputs < site.Reopen {
		return false, c.adopt(ctx, r)
	}
	c.Logger.Info("a changed configuration is being checked, meanwhile everything goes on as before")
	if err := c.preflight(ctx, r.config); err != nil {
		return false, err
	}
	if err := ctx.Err(); err != nil {
		return false, err
	}
	if takes.restart == "" {
		return false, c.adopt(ctx, r)
	}
	c.Logger.Info(takes.restart+", restarting", "reasons", takes.reasons)
	c.End(ErrRestart)
	return true, nil
}

// ReloadInPlace reads the configuration again and puts it in force, unless that takes a restart of the program. An error changes nothing.
func (c *Control) ReloadInPlace(ctx context.Context) error {
	next, err := c.Load()
	if err != nil {
		return err
	}
	r := &reload{config: next}
	r.files, r.output = c.filesOf(next)
	c.changing.Lock()
	takes := c.takes(r)
	c.changing.Unlock()
	if takes.restart != "" {
		return fmt.Errorf("they would need a restart of the program: %s", cmp.Or(takes.reasons, takes.restart))
	}
	if takes.outputs >= site.Reopen {
		if err := c.preflight(ctx, next); err != nil {
			return err
		}
	}
	return c.adopt(ctx, r)
}

// effort is what it takes to put a configuration in force, besides new values for cameras and networks.
type effort struct {
	outputs site.Action // the most that one of the outputs takes
	restart string      // why this process cannot go on; empty if it can
	reasons string      // of networks, cameras and outputs
}

// takes decides what a configuration takes; nothing else does. The lock changing is held.
func (c *Control) takes(r *reload) effort {
	was, remote := c.inForce()
	outputs := c.Outputs.Compare(c.outputChange(was, r))
	changes := append(site.Diff(c.Fleet.Site(), site.Resolve(r.config, remote)), outputs...)
	all := effort{outputs: outputs.Action(), reasons: strings.Join(changes.Reasons(site.Restart), "; ")}
	switch {
	case changes.Action() == site.Restart || !reflect.DeepEqual(restartPart(was), restartPart(r.config)):
		all.restart = "configuration changed beyond cameras and thresholds"
	case !c.files.same(r.files):
		all.restart = "files that the configuration names have changed"
	}
	return all
}

// outputChange returns what a reload changes of the outputs. The lock changing is held.
func (c *Control) outputChange(was *config.Config, r *reload) *site.OutputChange {
	before := c.outputFiles
	return &site.OutputChange{
		Was: site.ResolveOutputs(was), Next: site.ResolveOutputs(r.config),
		Renewed: func(path string) bool { return before[path] != r.output[path] },
	}
}

// filesOf returns the versions of the files of networks and of outputs. Remotely set values name none.
func (c *Control) filesOf(next *config.Config) (networks, outputs Files) {
	all := site.Resolve(next, nil)
	return stamps(network.Files(&all)), stamps(c.Outputs.Files(site.ResolveOutputs(next)))
}

// adopt puts a configuration in force that needs no restart, unless ctx has ended.
func (c *Control) adopt(ctx context.Context, r *reload) error {
	next := r.config
	c.changing.Lock()
	defer c.changing.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	was, _ := c.inForce()
	outputs := c.takes(r).outputs > site.Keep
	if reflect.DeepEqual(was, next) && !outputs {
		c.Logger.Info("configuration unchanged")
		return nil
	}
	kept, err := c.apply(ctx, next)
	if err != nil {
		return err
	}
	if outputs { // last: another reload may end ctx before, and nobody sees a page that goes back
		if err := c.Outputs.Reload(ctx, c.outputChange(was, r)); err != nil {
			_, back := c.apply(context.WithoutCancel(ctx), was)
			return errors.Join(err, back)
		}
	}
	c.outputFiles = r.output
	c.Run.Adopted(next)
	c.Logger.Info("configuration changed", "cameras", len(next.Cameras), "undisturbed", kept)
	return nil
}

// preflight finds what would keep a run with another configuration from starting. A network that is the same is opened again only where its
// files have changed.
func (c *Control) preflight(ctx context.Context, next *config.Config) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	was, remote := c.inForce()
	resolved := site.Resolve(next, remote)
	check := diagnose.Preflight{
		Config: next, Running: was, Program: []string{program, diagnose.Command},
		Renewed: slices.ContainsFunc(network.Files(&resolved), c.files.renewed), Remote: remote,
	}
	if c.Fleet.Site().Track {
		check.Names = c.Fleet.Names
	}
	return errors.Join(check.Run(ctx)...)
}

// restartPause is the shortest time between two restarts requested over MQTT.
const restartPause = time.Minute

// restart restarts with the configuration on disk, unless that would fail. It may take minutes.
func (c *Control) restart() error {
	if up := time.Since(c.Started); up < restartPause {
		return fmt.Errorf("started %v ago, the next restart is possible in %v", up.Round(time.Second), (restartPause - up).Round(time.Second))
	}
	next, err := c.Load()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-c.Ended:
			cancel()
		case <-ctx.Done():
		}
	}()
	if err := c.preflight(ctx, next); err != nil {
		return err
	}
	c.End(ErrRestart)
	return nil
}

// apply puts a configuration in force. kept is the number of cameras that went on capturing.
func (c *Control) apply(ctx context.Context, next *config.Config) (kept int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.remote
	kept, err = c.Fleet.Apply(ctx, c.Resolve(next).OpenedAs(c.Fleet.Site()))
	if err != nil {
		c.remote = before
		return 0, err
	}
	c.config = next
	return kept, nil
}

// restartPart returns the settings, besides those that site.Diff compares, that need a restart.
func restartPart(c *config.Config) config.Config {
	part := *c
	part.Cameras = nil
	part.Cascade = nil
	part.Model = config.Model{}
	part.Engine = config.Engine{}
	part.Remote = config.Remote{}
	part.Inference = config.Inference{}
	part.Motion = config.Motion{}
	part.Thermal = config.Thermal{}
	part.Log = ""
	part.Web = config.Web{} // of the outputs, which compare their own
	part.Webhooks = nil
	part.MQTT = config.MQTT{}
	part.Upload = config.Upload{}
	part.Events = config.Events{}
	part.Clips = config.Clips{} // and of cameras
	part.Bundle = config.Bundle{}
	part.Samples = config.Samples{}
	part.Detect = config.Detect{Masks: c.Detect.Masks, MapSide: c.Detect.MapSide, DepthUnit: c.Detect.DepthUnit}
	return part
}

package daemon

import (
	"errors"
	"fmt"
	"maps"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/site"
	"github.com/edge-infer/edge-infer/mqtt"
	"github.com/edge-infer/edge-infer/mqtt/command"
)

// controller carries out the remote commands that arrive over MQTT.
type controller struct{ run *run }

var _ mqtt.Controller = controller{}

func (c controller) SetDetect(camera string, on bool) error {
	_, err := c.run.setRemote(camera, func(k *command.Kept) { k.Detect = &on })
	if err == nil && !on {
		c.run.devices.EndObjects(camera)
	}
	return err
}

func (c controller) SetThreshold(camera string, threshold float64) error {
	_, err := c.run.setRemote(camera, func(k *command.Kept) { k.Threshold = &threshold })
	return err
}

func (c controller) SetInterval(camera string, frames int) error {
	_, err := c.run.setRemote(camera, func(k *command.Kept) { k.Interval = &frames })
	return err
}

func (c controller) SetLabels(camera string, labels []string) error {
	_, err := c.run.setRemote(camera, func(k *command.Kept) { k.Labels = &labels })
	return err
}

func (c controller) Withdraw(camera, control string) (mqtt.Settings, error) {
	settings, err := c.run.setRemote(camera, func(k *command.Kept) { k.Forget(control) })
	return remoteSettings(settings), err
}

func (c controller) Snapshot(camera string) error { return c.run.outputs.snapshots.Request(camera) }

func (c controller) Reload() error {
	c.run.askReload()
	return nil
}

func (c controller) Restart() error { return c.run.restart(c.run.ending) }

// remoteSettings returns settings as the MQTT client publishes them.
func remoteSettings(s site.Settings) mqtt.Settings {
	return mqtt.Settings{Detect: s.Detect, Threshold: s.Confidence, Interval: s.Interval, Labels: s.Classes}
}

// current returns what runs, with the values that were set remotely.
func (r *run) current() (site.Site, map[string]command.Kept) {
	r.setting.Lock()
	defer r.setting.Unlock()
	return r.site, r.remote
}

// loadRemote reads the values that were set remotely in this and earlier runs.
func (r *run) loadRemote() {
	known := map[string]command.Kept{}
	for i := range r.config.Cameras {
		name := r.config.Cameras[i].Name
		if kept, here := r.remote[name]; here {
			known[name] = kept
		} else if client := r.outputs.client; client != nil && client.Controller != nil {
			known[name] = client.Remote(name)
		}
	}
	r.remote = known
}

// setRemote changes the remotely set values of a camera, and returns the settings that are in force then. An error changes nothing.
func (r *run) setRemote(camera string, change func(*command.Kept)) (site.Settings, error) {
	r.setting.Lock()
	defer r.setting.Unlock()
	remote := maps.Clone(r.remote)
	kept := remote[camera]
	change(&kept)
	remote[camera] = kept
	next := site.Resolve(r.config, remote).OpenedAs(r.site)
	wanted, before := next.Camera(camera), r.site.Camera(camera)
	if wanted == nil || before == nil {
		return site.Settings{}, fmt.Errorf("no camera %q", camera)
	}
	settings := r.settings(wanted)
	if kept.Labels != r.remote[camera].Labels && kept.Labels != nil {
		settings = pipelineSettings(wanted) // a class that the model lacks is an error
	}
	if err := r.devices.SetSettings(camera, *settings); err != nil {
		return site.Settings{}, err
	}
	if err := r.devices.Tune(&next, &r.site); err != nil {
		return site.Settings{}, errors.Join(err, r.devices.SetSettings(camera, *r.settings(before)))
	}
	r.site = next
	r.remote = remote
	return wanted.Settings, nil
}

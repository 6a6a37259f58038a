package outputs

import (
	"context"
	"fmt"
	"strings"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/onvif"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/web"
	"github.com/edge-infer/edge-infer/mqtt/command"
	"github.com/edge-infer/edge-infer/mqtt/credentials"
)

// cameras are the cameras as the page changes them: added ones are saved in the state directory and opened by the reload that follows, and
// settings take the way of MQTT commands, so that both show and keep the same values.
type cameras struct {
	added   config.AddedCameras
	execute func(command.Command) error
	forget  func(camera string)
	reload  func()
}

var _ web.Cameras = (*cameras)(nil)

// Added implements web.Cameras.
func (c *cameras) Added() ([]string, error) { return c.added.Names() }

// Writable implements web.Cameras.
func (c *cameras) Writable() error { return c.added.Writable() }

// Add implements web.Cameras.
func (c *cameras) Add(camera web.NewCamera) error {
	var err error
	saved := config.AddedCamera{Name: strings.TrimSpace(camera.Name)}
	if saved.URI, err = config.WithLogin(strings.TrimSpace(camera.URI), camera.User, camera.Password); err != nil {
		return err
	}
	if saved.Record, err = config.WithLogin(strings.TrimSpace(camera.Record), camera.User, camera.Password); err != nil {
		return err
	}
	if err := c.added.Add(saved); err != nil {
		return err
	}
	c.reload()
	return nil
}

// Remove implements web.Cameras.
func (c *cameras) Remove(name string) error {
	if err := c.added.Remove(name); err != nil {
		return err
	}
	c.forget(name)
	c.reload()
	return nil
}

// Set implements web.Cameras.
func (c *cameras) Set(camera, setting, value string) error {
	cmd, err := command.ParseValue(camera, setting, value)
	if err != nil {
		return err
	}
	return c.execute(cmd)
}

// Search implements web.Cameras.
func (c *cameras) Search(ctx context.Context, search web.Search) ([]web.FoundCamera, error) {
	login := onvif.Login{User: search.User, Password: credentials.Secret(search.Password)}
	discovery := onvif.Discovery{Addresses: search.Addresses, Login: login}
	result, err := discovery.Run(ctx)
	var found []web.FoundCamera
	for i := range result.Cameras {
		found = append(found, foundCamera(&result.Cameras[i]))
	}
	return found, err
}

// foundCamera returns a camera with the streams to use.
func foundCamera(c *onvif.Camera) web.FoundCamera {
	found := web.FoundCamera{
		Name: c.Name, Title: strings.TrimSpace(c.Manufacturer + " " + c.Model), Address: c.Address, Reason: c.Reason,
	}
	var streams []string
	for _, p := range c.Profiles {
		streams = append(streams, strings.TrimSpace(fmt.Sprintf("%dx%d %s", p.Width, p.Height, p.Encoding)))
		switch {
		case p.Suggested:
			found.URI = p.Address
		case p.Record:
			found.Record = p.Address
		}
	}
	found.Streams = strings.Join(streams, ", ")
	return found
}

// pageCameras returns what the page changes cameras with.
func pageCameras(o *Outputs) web.Cameras {
	return &cameras{
		added: config.AddedCameras{Sources: o.Sources}, execute: o.commands.Execute, reload: o.Reread,
		forget: func(camera string) { o.commands.values.ForgetRemote(camera) },
	}
}

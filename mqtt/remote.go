package mqtt

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/edge-infer/edge-infer/internal/atomicfile"
	"github.com/edge-infer/edge-infer/mqtt/command"
	"github.com/edge-infer/edge-infer/mqtt/homeassistant"
)

// Apply puts what remote commands have set in the place of the values.
func (s *Settings) Apply(kept command.Kept) {
	if kept.Detect != nil {
		s.Detect = *kept.Detect
	}
	if kept.Threshold != nil {
		s.Threshold = *kept.Threshold
	}
	if kept.Interval != nil {
		s.Interval = *kept.Interval
	}
	if kept.Labels != nil {
		s.Labels = nil
		if len(*kept.Labels) > 0 {
			s.Labels = slices.Clone(*kept.Labels)
		}
	}
}

const (
	remoteName  = "remote.json"
	remotePause = time.Second // least time between two writes: any client may send commands, and flash wears out
)

// Remote returns the remotely set values of a camera, from this run or an earlier one. They are stored next to the event spool, so that a
// camera that was switched off stays off after a restart. The daemon applies them when it opens the camera, before it publishes its
// Settings.
func (c *Client) Remote(camera string) command.Kept {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.remote[camera]
}

// ForgetRemote takes back what remote commands have set of a camera, of those controls or of all when none is named: its configuration has
// changed since.
func (c *Client) ForgetRemote(camera string, controls ...string) {
	c.mu.Lock()
	r, known := c.remote[camera]
	for _, control := range controls {
		r.Forget(control)
	}
	if len(controls) == 0 || r == (command.Kept{}) {
		delete(c.remote, camera)
	} else {
		c.remote[camera] = r
	}
	c.mu.Unlock()
	if known {
		c.remoteFile.Do()
	}
}

// pruneRemote removes the values of removed cameras.
func (c *Client) pruneRemote(cameras []homeassistant.Camera) {
	c.mu.Lock()
	before := len(c.remote)
	maps.DeleteFunc(c.remote, func(name string, _ command.Kept) bool {
		return !slices.ContainsFunc(cameras, func(camera homeassistant.Camera) bool { return camera.Name == name })
	})
	changed := len(c.remote) != before
	c.mu.Unlock()
	if changed {
		c.remoteFile.Do()
	}
}

// loadRemote loads the saved settings of an earlier process. An unreadable file is logged and ignored.
func (c *Client) loadRemote() {
	c.remote = map[string]command.Kept{}
	path := c.statePath(remoteName)
	if path == "" {
		return
	}
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, &c.remote)
	}
	for camera, r := range c.remote {
		if err == nil && !r.InRange() {
			err = fmt.Errorf("values of %q are out of range", camera)
		}
	}
	if c.remote == nil || err != nil {
		c.remote = map[string]command.Kept{}
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		c.Logger.Warn("remote settings of an earlier run cannot be read, those of the configuration are in force", "file", path, "error", err)
	}
}

// recordRemote notes a command that was carried out.
func (c *Client) recordRemote(cmd command.Command) {
	c.mu.Lock()
	r := c.remote[cmd.Camera]
	r.Set(cmd)
	c.remote[cmd.Camera] = r
	c.mu.Unlock()
	c.remoteFile.Do()
}

// saveRemote writes the file. Only remoteFile calls it.
func (c *Client) saveRemote() {
	path := c.statePath(remoteName)
	if path == "" {
		return
	}
	c.mu.Lock()
	data, err := json.Marshal(c.remote)
	c.mu.Unlock()
	if err == nil {
		err = atomicfile.Write(path, data, 0o600)
	}
	if err != nil {
		c.Logger.Warn("remote settings cannot be kept, a restart will forget them", "file", path, "error", err)
	}
}

// statePath returns the path of a state file of the client, or "" if nothing is stored.
func (c *Client) statePath(name string) string {
	if c.events.Directory == "" {
		return ""
	}
	return filepath.Join(c.events.Directory, name)
}

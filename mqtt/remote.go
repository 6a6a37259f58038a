package mqtt

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/edge-infer/edge-infer/internal/atomicfile"
	"github.com/edge-infer/edge-infer/mqtt/command"
	"github.com/edge-infer/edge-infer/mqtt/homeassistant"
)

const (
	remoteName  = "remote.json"
	remotePause = time.Second // least time between two writes: any client may send commands, and flash wears out
)

// RemoteValues are what commands have set, by camera, and the file that keeps them. They outlast the client, so that a run has them that
// has no broker. Any goroutine may use them.
type RemoteValues struct {
	path   string // empty for no file
	logger *slog.Logger
	file   coalesced // writes it

	executing sync.Mutex // held while a value is set: the file has what the controller has

	mu     sync.Mutex
	values map[string]command.Kept
}

// OpenRemoteValues reads the values of an earlier run from a directory, in which later ones are kept; empty for neither. A file that cannot
// be read is logged and ignored.
func OpenRemoteValues(directory string, logger *slog.Logger) *RemoteValues {
	r := &RemoteValues{logger: logger}
	if directory != "" {
		r.path = filepath.Join(directory, remoteName)
	}
	r.file.pause, r.file.run = remotePause, r.save
	r.load()
	return r
}

// Close writes what has not been written.
func (r *RemoteValues) Close() { r.file.Flush() }

// Execute has a controller carry out a command and keeps the value that it sets. It returns the values to publish, by control.
func (r *RemoteValues) Execute(controller Controller, cmd command.Command) (published map[string]string, err error) {
	switch cmd.Control {
	case command.Snapshot:
		return nil, controller.Snapshot(cmd.Camera)
	case command.Reload:
		return nil, controller.Reload()
	case command.Restart:
		return nil, controller.Restart()
	}
	r.executing.Lock()
	defer r.executing.Unlock()
	if cmd.Withdraw {
		settings, err := controller.Withdraw(cmd.Camera, cmd.Control)
		if err != nil {
			return nil, err
		}
		r.ForgetRemote(cmd.Camera, cmd.Control)
		return settings.texts(), nil
	}
	settings := Settings{Detect: cmd.On, Threshold: cmd.Threshold, Interval: cmd.Interval, Labels: cmd.Labels}
	switch cmd.Control {
	case command.Detect:
		err = controller.SetDetect(cmd.Camera, cmd.On)
	case command.Threshold:
		err = controller.SetThreshold(cmd.Camera, cmd.Threshold)
	case command.Interval:
		err = controller.SetInterval(cmd.Camera, cmd.Interval)
	case command.Labels:
		err = controller.SetLabels(cmd.Camera, cmd.Labels)
	}
	if err != nil {
		return nil, err
	}
	r.record(cmd)
	return map[string]string{cmd.Control: settings.texts()[cmd.Control]}, nil
}

// Remote returns the remotely set values of a camera, from this run or an earlier one. They are stored next to the event spool, so that a
// camera that was switched off stays off after a restart. The daemon applies them when it opens the camera, before it publishes its
// Settings.
func (r *RemoteValues) Remote(camera string) command.Kept {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.values[camera]
}

// ForgetRemote takes back what remote commands have set of a camera, of those controls or of all when none is named: its configuration has
// changed since.
func (r *RemoteValues) ForgetRemote(camera string, controls ...string) {
	r.mu.Lock()
	kept, known := r.values[camera]
	for _, control := range controls {
		kept.Forget(control)
	}
	if len(controls) == 0 || kept == (command.Kept{}) {
		delete(r.values, camera)
	} else {
		r.values[camera] = kept
	}
	r.mu.Unlock()
	if known {
		r.file.Do()
	}
}

// prune removes the values of removed cameras.
func (r *RemoteValues) prune(cameras []homeassistant.Camera) {
	r.mu.Lock()
	before := len(r.values)
	maps.DeleteFunc(r.values, func(name string, _ command.Kept) bool {
		return !slices.ContainsFunc(cameras, func(camera homeassistant.Camera) bool { return camera.Name == name })
	})
	changed := len(r.values) != before
	r.mu.Unlock()
	if changed {
		r.file.Do()
	}
}

// load loads the saved settings of an earlier process. An unreadable file is logged and ignored.
func (r *RemoteValues) load() {
	r.values = map[string]command.Kept{}
	if r.path == "" {
		return
	}
	data, err := os.ReadFile(r.path)
	if err == nil {
		err = json.Unmarshal(data, &r.values)
	}
	for camera, kept := range r.values {
		if err == nil && !kept.InRange() {
			err = fmt.Errorf("values of %q are out of range", camera)
		}
	}
	if r.values == nil || err != nil {
		r.values = map[string]command.Kept{}
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		r.logger.Warn("remote settings of an earlier run cannot be read, those of the configuration are in force", "file", r.path, "error", err)
	}
}

// record notes a command that was carried out.
func (r *RemoteValues) record(cmd command.Command) {
	r.mu.Lock()
	kept := r.values[cmd.Camera]
	kept.Set(cmd)
	r.values[cmd.Camera] = kept
	r.mu.Unlock()
	r.file.Do()
}

// save writes the file. Only file calls it.
func (r *RemoteValues) save() {
	if r.path == "" {
		return
	}
	r.mu.Lock()
	data, err := json.Marshal(r.values)
	r.mu.Unlock()
	if err == nil {
		err = os.MkdirAll(filepath.Dir(r.path), 0o700)
	}
	if err == nil {
		err = atomicfile.Write(r.path, data, 0o600)
	}
	if err != nil {
		r.logger.Warn("remote settings cannot be kept, a restart will forget them", "file", r.path, "error", err)
	}
}

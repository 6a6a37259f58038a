package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"

	"github.com/edge-infer/edge-infer/internal/atomicfile"
	"github.com/edge-infer/edge-infer/internal/boundedfile"
)

// fleetFile is the name, in the state directory, of the settings that edge-infer fleet configure has given this device.
const fleetFile = "fleet.yaml"

// ownSettings are those that a fleet has not in common, and the keys that its settings must be signed by.
var ownSettings = []string{"name", "cameras", "cascade", "webhooks", "bundle.keys"}

// FleetSettings are the settings that this device has in common with others, in a state directory. They are applied over file, environment
// and flags.
type FleetSettings struct{ State string }

// Read returns the text; nil if there is none.
func (f FleetSettings) Read() ([]byte, error) {
	text, err := boundedfile.Read(filepath.Join(f.State, fleetFile), maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return text, err
}

// Write replaces the text; nil removes it. They come into force with the next reload.
func (f FleetSettings) Write(text []byte) error {
	path := filepath.Join(f.State, fleetFile)
	if text == nil {
		err := os.Remove(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	if err := atomicfile.MkdirAll(f.State, 0o700); err != nil {
		return err
	}
	return atomicfile.Write(path, text, 0o600)
}

// CheckFleetSettings returns what is wrong with the form of settings for a fleet.
func CheckFleetSettings(text []byte) error {
	if len(text) > maxFile {
		return fmt.Errorf("the settings have %d bytes, at most %d are read", len(text), maxFile)
	}
	l := &layers{Config: &Config{}, at: places{}}
	_, found, err := l.merge(text)
	if err != nil {
		return message(err)
	}
	for i := range found {
		return fmt.Errorf("line %d: %w", found[i].Line, found[i].describe())
	}
	return l.ofDevice(&Config{})
}

// applyFleet applies the fleet's settings. References in them are not resolved: they were not written by who may read this process's
// environment.
func (l *layers) applyFleet() {
	path := filepath.Join(l.State, fleetFile)
	if _, err := os.Stat(path); l.State == "" || errors.Is(err, fs.ErrNotExist) {
		return
	}
	before := *l.Config
	whole := location{source: ofNone, name: path}
	l.file(whole)
	if err := l.ofDevice(&before); err != nil {
		l.wrong(whole, err)
	}
}

// ofDevice returns an error if a setting that a fleet has not in common differs from before.
func (l *layers) ofDevice(before *Config) error {
	now, then := l.Config, before
	for i, pair := range [][2]any{ // in the order of ownSettings
		{now.Name, then.Name},
		{len(now.Cameras), len(then.Cameras)},
		{len(now.Cascade), len(then.Cascade)},
		{len(now.Webhooks), len(then.Webhooks)},
		{now.Bundle.Keys, then.Bundle.Keys},
	} {
		if !reflect.DeepEqual(pair[0], pair[1]) {
			return fmt.Errorf("%s is each device's own, and not for a fleet", ownSettings[i])
		}
	}
	return nil
}

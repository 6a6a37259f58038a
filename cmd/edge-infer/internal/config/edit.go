package config

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/parser"

	"github.com/edge-infer/edge-infer/engine/atomicfile"
	"github.com/edge-infer/edge-infer/postprocess/zone"
)

// SetAnalytics writes a camera's zones and lines into the configuration file and leaves the rest of it, comments included, as it is. A file
// that would have a mistake then is not written.
func SetAnalytics(path, camera string, analytics zone.Config) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("config: %w", err)
	}
	c := Default()
	if err := c.merge(path, data); err != nil {
		return err
	}
	index := slices.IndexFunc(c.Cameras, func(known Camera) bool { return known.Name == camera })
	if index < 0 {
		return fmt.Errorf("config %s: no camera %q", path, camera)
	}
	file, err := parser.ParseBytes(data, parser.ParseComments)
	if err != nil {
		return fmt.Errorf("config %s: %s", path, firstLine(err))
	}
	value, err := yaml.Marshal(map[string]zone.Config{"analytics": analytics})
	if err != nil {
		return fmt.Errorf("config: %w", err)
	}
	place, err := yaml.PathString(fmt.Sprintf("$.cameras[%d]", index))
	if err != nil {
		return fmt.Errorf("config: %w", err)
	}
	if err := place.MergeFromReader(file, strings.NewReader(string(value))); err != nil {
		return fmt.Errorf("config %s: %s", path, firstLine(err))
	}
	text := []byte(file.String())
	next := Default()
	if err := next.merge(path, text); err != nil {
		return err
	}
	if err := next.Validate(Everything()); err != nil {
		return fmt.Errorf("config %s: %w", path, err)
	}
	return replace(path, text)
}

// replace writes the file in one step and keeps its mode.
func replace(path string, text []byte) error {
	mode := os.FileMode(0o644)
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	if err := atomicfile.Write(path, text, mode); err != nil {
		return fmt.Errorf("config: %w (the folder must be writable for the service's user)", err)
	}
	return nil
}

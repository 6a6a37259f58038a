package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config/reference"
)

// fragments is the folder beside the configuration file whose *.yaml are read after it.
const fragments = "conf.d"

// Files are the files that Load reads, in order: File, then *.yaml of the folder conf.d beside it by name. A later file's settings win; its
// cameras and cascades are added to those before.
func (s *Sources) Files() ([]string, error) {
	if s.File == "" {
		return nil, nil
	}
	more, err := filepath.Glob(filepath.Join(literal(filepath.Dir(s.File)), fragments, "*.yaml"))
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	return append([]string{s.File}, more...), nil // Glob sorts
}

// literal keeps the characters of a path from being a pattern.
func literal(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

// location is where a key stands.
type location struct {
	path string
	line int
}

func (l location) String() string {
	if l.line == 0 {
		return "config " + l.path
	}
	return fmt.Sprintf("config %s line %d", l.path, l.line)
}

// places are those of every key of the files, by its path in the whole configuration as in detect.max or cameras[3].uri.
type places map[string]location

// of is the place of a key, or the file itself for one that no file holds.
func (p places) of(key, path string) location {
	if at, known := p[key]; known {
		return at
	}
	return location{path: path}
}

// files puts the files over c and resolves their references. Nothing is changed by files with a mistake.
func (s *Sources) files(c *Config, lookup func(string) (string, bool)) (places, error) {
	next := *c
	found, err := s.merged(&next)
	if err != nil {
		return nil, err
	}
	r := reference.Resolver{Lookup: lookup, Where: func(key string) string { return found.of(key, s.File).String() }}
	if missing := r.Resolve(&next); len(missing) > 0 {
		return nil, &fileError{missing}
	}
	*c = next
	return found, nil
}

// merged puts the files over c as they stand.
func (s *Sources) merged(c *Config) (places, error) {
	paths, err := s.Files()
	if err != nil {
		return nil, err
	}
	found := places{}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrPermission) {
			return nil, fmt.Errorf("config: %w (sudo, or be in the group that may read it)", err)
		}
		if err != nil {
			return nil, fmt.Errorf("config: %w", err)
		}
		cameras, cascade := c.Cameras, c.Cascade
		c.Cameras, c.Cascade = nil, nil
		lines, err := c.merge(path, data)
		if err != nil {
			return nil, err
		}
		for key, line := range lines {
			found[shifted(key, len(cameras), len(cascade))] = location{path, line}
		}
		c.Cameras, c.Cascade = slices.Concat(cameras, c.Cameras), slices.Concat(cascade, c.Cascade)
	}
	return found, nil
}

// shifted is the path of a key in the whole configuration when so many cameras and cascades come before those of its file.
func shifted(key string, cameras, cascade int) string {
	for name, before := range map[string]int{"cameras": cameras, "cascade": cascade} {
		rest, found := strings.CutPrefix(key, name+"[")
		number, rest, closed := strings.Cut(rest, "]")
		var i int
		if _, err := fmt.Sscan(number, &i); found && closed && err == nil {
			return fmt.Sprintf("%s[%d]%s", name, before+i, rest)
		}
	}
	return key
}

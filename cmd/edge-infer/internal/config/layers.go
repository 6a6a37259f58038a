package config

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/edge-infer/edge-infer/internal/boundedfile"
)

// fragments is the directory next to the configuration file whose *.yaml files are read after it.
const fragments = "conf.d"

// Files returns the files that Load reads, in order: File, then *.yaml of the directory conf.d next to it, by name. Settings of later files
// win; their cameras and secondary networks are appended.
func (s *Sources) Files() ([]string, error) {
	if s.File == "" {
		return nil, nil
	}
	dir := filepath.Dir(s.File)
	more, err := boundedfile.Call(dir, func() ([]string, error) {
		return filepath.Glob(filepath.Join(literal(dir), fragments, "*.yaml"))
	})
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	return append([]string{s.File}, more...), nil // Glob sorts
}

// literal escapes a path for use in a glob pattern.
func literal(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

// Numbers of the sources after the files, which are numbered from 1.
const (
	ofEnvironment = 1<<20 + iota
	ofFlags
	ofNone // errors of the whole configuration come last
)

// location is the position of a value.
type location struct {
	source int
	name   string // a path, a variable or a flag
	line   int    // of a file, 0 for all of it
}

func (l location) String() string {
	switch {
	case l.name == "":
		return ""
	case l.source == ofEnvironment:
		return "environment " + l.name
	case l.source == ofFlags:
		return l.name
	case l.line == 0:
		return "config " + l.name
	}
	return fmt.Sprintf("config %s line %d", l.name, l.line)
}

// places maps the path of every key of a source to its location; paths are those of the whole configuration, such as detect.max_detections
// or cameras[3].uri.
type places map[string]location

// of returns the location of a key, or of its closest parent; none if no source has it.
func (p places) of(key string) location {
	for key != "" {
		if at, known := p[key]; known {
			return at
		}
		key = key[:max(strings.LastIndexAny(key, ".["), 0)]
	}
	return location{source: ofNone}
}

// replace sets the location of a whole list.
func (p places) replace(list string, at location) {
	maps.DeleteFunc(p, func(key string, _ location) bool { return strings.HasPrefix(key, list+"[") })
	p[list] = at
}

// layers builds a configuration from its sources and collects the errors in them.
type layers struct {
	*Config

	lookup     func(name string) (value string, set bool)
	at         places
	found      []located
	unreadKeys []string // keys whose values could not be read
	unread     bool     // a file could not be read at all
}

// located is an error with its location.
type located struct {
	location
	error
}

// wrong records an error, and the keys whose values are unknown because of it.
func (l *layers) wrong(at location, err error, unreadKeys ...string) {
	l.found = append(l.found, located{at, err})
	l.unreadKeys = append(l.unreadKeys, unreadKeys...)
}

// set applies the text of a variable or a flag to a setting.
func (l *layers) set(s *setting, value pflag.Value, text string, at location) {
	l.at[s.key] = at
	if err := value.Set(text); err != nil {
		l.wrong(at, settingError(s.key, valueError(value, text, err)), s.key)
	}
}

// setCameras replaces the cameras of earlier sources.
func (l *layers) setCameras(cameras []Camera, err error, at location) {
	if err != nil {
		l.wrong(at, err, "cameras")
	}
	l.Cameras = cameras
	l.at.replace("cameras", at)
}

// check adds the errors in the values of a scope. Unknown values, and after an unreadable file all values that it may set, are not
// reported.
func (l *layers) check(scope Scope) {
	for _, m := range l.Config.mistakes(scope) {
		at := l.at.of(m.keys[0])
		unknown := slices.ContainsFunc(m.keys, func(key string) bool {
			return slices.ContainsFunc(l.unreadKeys, func(other string) bool { return holds(key, other) || holds(other, key) })
		})
		if !unknown && !(l.unread && (len(m.keys) > 1 || at.name == "")) {
			l.found = append(l.found, located{at, m.error})
		}
	}
}

// holds reports whether key is group itself or below it.
func holds(group, key string) bool {
	rest, found := strings.CutPrefix(key, group)
	return found && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// err returns all errors found, nil for none.
func (l *layers) err() error {
	if len(l.found) == 0 {
		return nil
	}
	return l.mistakes()
}

// mistakes returns the errors in the order of the sources and their lines.
func (l *layers) mistakes() Errors {
	slices.SortStableFunc(l.found, func(a, b located) int { return cmp.Or(cmp.Compare(a.source, b.source), cmp.Compare(a.line, b.line)) })
	all := make(Errors, len(l.found))
	for i, m := range l.found {
		all[i] = m.error
		if m.name != "" {
			all[i] = fmt.Errorf("%v: %w", m.location, m.error)
		}
	}
	return all
}

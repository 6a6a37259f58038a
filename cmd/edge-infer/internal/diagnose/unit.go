package diagnose

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// unit holds the [Service] sections of a systemd unit and its drop-ins.
type unit struct {
	name     string   // with .service
	files    []string // in the order read
	settings []setting
}

type setting struct{ key, value string }

// unitDirs returns the directories of units, highest priority first.
func unitDirs() []string {
	return []string{
		"/etc/systemd/system", "/run/systemd/system", "/usr/local/lib/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system",
	}
}

// loadUnit reads a unit from the directories of systemd below root. The suffix .service may be omitted.
func loadUnit(root, name string) (*unit, error) {
	name = strings.TrimSuffix(name, ".service")
	if name == "" || strings.ContainsAny(name, "/ ") {
		return nil, fmt.Errorf("%q is not a unit name", name)
	}
	u := &unit{name: name + ".service"}
	names := []string{u.name}
	if before, _, instance := strings.Cut(name, "@"); instance {
		names = append(names, before+"@.service")
	}
	main, dropIns := "", map[string]string{} // by file name; the directory with the highest priority wins
	for _, name := range names {
		for _, dir := range unitDirs() {
			path := filepath.Join(root, dir, name)
			if _, err := os.Stat(path); err == nil && main == "" {
				main = path
			}
			found, _ := filepath.Glob(path + ".d/*.conf") // the only error is a malformed pattern
			for _, file := range found {
				if dropIns[filepath.Base(file)] == "" {
					dropIns[filepath.Base(file)] = file
				}
			}
		}
	}
	if main == "" {
		return nil, fmt.Errorf("no unit %s in %s", u.name, strings.Join(unitDirs(), ", "))
	}
	u.files = []string{main}
	for _, name := range slices.Sorted(maps.Keys(dropIns)) {
		u.files = append(u.files, dropIns[name])
	}
	for _, file := range u.files {
		text, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		u.read(string(text))
	}
	return u, nil
}

// read adds the settings of the [Service] section.
func (u *unit) read(text string) {
	inside := false
	text = strings.ReplaceAll(text, "\\\n", " ")
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line[0] == '#' || line[0] == ';':
		case line[0] == '[':
			inside = line == "[Service]"
		case inside:
			if key, value, found := strings.Cut(line, "="); found {
				u.settings = append(u.settings, setting{strings.TrimSpace(key), u.expand(strings.TrimSpace(value))})
			}
		}
	}
}

// expand replaces the specifiers that this project's units use.
func (u *unit) expand(value string) string {
	_, instance, _ := strings.Cut(strings.TrimSuffix(u.name, ".service"), "@")
	return strings.NewReplacer("%%", "%", "%i", instance, "%I", instance, "%C", "/var/cache", "%S", "/var/lib", "%t", "/run").Replace(value)
}

// all returns the values of a setting that may occur several times; an empty one resets the list.
func (u *unit) all(key string) []string {
	var values []string
	for _, s := range u.settings {
		switch {
		case s.key != key:
		case s.value == "":
			values = nil
		default:
			values = append(values, s.value)
		}
	}
	return values
}

// last returns the last value of a setting, empty for none.
func (u *unit) last(key string) string {
	value := ""
	for _, s := range u.settings {
		if s.key == key {
			value = s.value
		}
	}
	return value
}

// enabled reports whether a boolean setting is on.
func (u *unit) enabled(key string) bool {
	return slices.Contains([]string{"1", "yes", "y", "true", "t", "on"}, strings.ToLower(u.last(key)))
}

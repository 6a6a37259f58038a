// Package unit reads the unit of a systemd service and finds out what it may not do on this machine.
package unit

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

// Unit is what the [Service] sections of a unit and its drop-ins say.
type Unit struct {
	Name  string   // with .service
	Files []string // that were read, in their order

	settings []setting
}

type setting struct{ key, value string }

// directories hold units, the most important one first.
func dirs() []string {
	return []string{
		"/etc/systemd/system", "/run/systemd/system", "/usr/local/lib/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system",
	}
}

// Load reads a unit by its name, .service may be left away, from the places where systemd looks. root is put before them.
func Load(root, name string) (*Unit, error) {
	name = strings.TrimSuffix(name, ".service")
	if name == "" || strings.ContainsAny(name, "/ ") {
		return nil, fmt.Errorf("%q is no name of a unit", name)
	}
	u := &Unit{Name: name + ".service"}
	names := []string{u.Name}
	if before, _, instance := strings.Cut(name, "@"); instance {
		names = append(names, before+"@.service")
	}
	main, dropIns := "", map[string]string{} // by file name: that of the most important directory counts
	for _, name := range names {
		for _, dir := range dirs() {
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
		return nil, fmt.Errorf("no unit %s in %s", u.Name, strings.Join(dirs(), ", "))
	}
	u.Files = []string{main}
	for _, name := range slices.Sorted(maps.Keys(dropIns)) {
		u.Files = append(u.Files, dropIns[name])
	}
	for _, file := range u.Files {
		text, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		u.read(string(text))
	}
	return u, nil
}

// read takes the settings of the section over.
func (u *Unit) read(text string) {
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

// expand puts in what stands for a specifier. Those that this project's units do not use stay.
func (u *Unit) expand(value string) string {
	_, instance, _ := strings.Cut(strings.TrimSuffix(u.Name, ".service"), "@")
	return strings.NewReplacer("%%", "%", "%i", instance, "%I", instance, "%C", "/var/cache", "%S", "/var/lib", "%t", "/run").Replace(value)
}

// All are the values of a setting that may be given several times; an empty one takes those before it away.
func (u *Unit) All(key string) []string {
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

// Last is the value of a setting that counts once; empty for none.
func (u *Unit) Last(key string) string {
	value := ""
	for _, s := range u.settings {
		if s.key == key {
			value = s.value
		}
	}
	return value
}

// True reports whether a setting is one of systemd's words for yes.
func (u *Unit) True(key string) bool {
	return slices.Contains([]string{"1", "yes", "y", "true", "t", "on"}, strings.ToLower(u.Last(key)))
}

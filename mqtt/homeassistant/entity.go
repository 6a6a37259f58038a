package homeassistant

import (
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"
)

// entity is one entity of a device: its key, which stays the same, and its configuration.
type entity struct {
	key    string
	config map[string]any
}

// device collects the entities of one Home Assistant device.
type device struct {
	name         string // of its discovery messages
	id           string // the identifier in Home Assistant
	info         map[string]any
	availability []any
	entities     []entity
	taken        map[string]bool
}

// config is what an entity has beside its name.
type config map[string]any

// add puts in an entity under a key that is free.
func (d *device) add(key, platform, name string, c config) {
	key = identifier(key)
	for d.taken[key] {
		key += "_"
	}
	d.taken[key] = true
	all := map[string]any{"platform": platform, "name": name, "unique_id": d.id + "_" + key}
	for k, v := range c {
		all[k] = v
	}
	d.entities = append(d.entities, entity{key, all})
}

// with is a configuration with more in it.
func (c config) with(more config) config {
	all := config{}
	for _, part := range [...]config{c, more} {
		for k, v := range part {
			all[k] = v
		}
	}
	return all
}

// valueOf is a template that digs a value out of a JSON payload. The names are quoted, because users choose some of them.
func valueOf(path ...string) string {
	var text strings.Builder
	text.WriteString("{{ value_json")
	for _, name := range path {
		text.WriteString("[" + quoted(name) + "]")
	}
	return text.String() + " }}"
}

// quoted is a text as a template's constant, which has JSON's escapes.
func quoted(text string) string {
	data, _ := json.Marshal(text) // of a string there is no error
	return string(data)
}

// occupied is a binary sensor's value: on while the number on a topic is above zero.
func occupied(topic string) config {
	return config{
		"state_topic": topic, "value_template": "{{ 'ON' if value | int(0) > 0 else 'OFF' }}", "device_class": "occupancy",
	}
}

// identifier keeps what Home Assistant allows in discovery topics.
func identifier(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, name)
}

// title is a name as people write it: with spaces between its words, and a capital letter at its start.
func title(name string) string {
	words := strings.FieldsFunc(name, func(r rune) bool { return r == '_' || r == '-' || unicode.IsSpace(r) || unicode.IsControl(r) })
	text := strings.Join(words, " ")
	first, size := utf8.DecodeRuneInString(text)
	if size == 0 {
		return name
	}
	return string(unicode.ToUpper(first)) + text[size:]
}

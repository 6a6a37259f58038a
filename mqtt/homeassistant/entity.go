package homeassistant

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// entity is an entity of a device: its permanent key and its configuration.
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

// config is the configuration of an entity without its name.
type config map[string]any

// add adds an entity under a unique key.
func (d *device) add(key, platform, name string, c config) {
	key = spaced(key)
	for d.taken[key] {
		key += "_"
	}
	d.taken[key] = true
	// With the machine's name in it, the ids of two machines with cameras of one name do not depend on who came first.
	id := slug(d.id + "_" + key)
	all := map[string]any{
		"platform": platform, "name": name, "unique_id": d.id + "_" + key,
		"object_id":         id, // read by cores before 2025.10; later ones ignore it beside the other
		"default_entity_id": platform + "." + id,
	}
	for k, v := range c {
		all[k] = v
	}
	d.entities = append(d.entities, entity{key, all})
}

// with returns c extended by more.
func (c config) with(more config) config {
	all := config{}
	for _, part := range [...]config{c, more} {
		for k, v := range part {
			all[k] = v
		}
	}
	return all
}

// offByDefault is for sensors whose values change with every message, which would fill Home Assistant's history.
func (c config) offByDefault() config { return c.with(config{"enabled_by_default": false}) }

// valueOf returns a template that extracts a value from a JSON payload. The names are quoted, because some are chosen by users.
func valueOf(path ...string) string {
	return "{{ " + field(path...) + " }}"
}

// fileName returns a template that extracts the last element of a path in a JSON payload, so that directories are not published.
func fileName(path ...string) string {
	return "{{ (" + field(path...) + " | string).split('/') | last }}"
}

// field returns the expression of a value in a JSON payload.
func field(path ...string) string {
	var text strings.Builder
	text.WriteString("value_json")
	for _, name := range path {
		text.WriteString("[" + quoted(name) + "]")
	}
	return text.String()
}

// quoted returns text as a string constant of a template, which uses JSON's escapes.
func quoted(text string) string {
	data, _ := json.Marshal(text) // of a string there is no error
	return string(data)
}

// occupied returns the configuration of a binary sensor that is on while the number on a topic is above zero.
func occupied(topic string) config {
	return config{
		"state_topic": topic, "value_template": "{{ 'ON' if value | int(0) > 0 else 'OFF' }}", "device_class": "occupancy",
	}
}

// hashed matches a name that looks like one that identifier has changed.
var hashed = regexp.MustCompile(`-[0-9a-f]{8}$`)

// identifier converts a name to what Home Assistant allows in discovery topics, different names to different identifiers: other characters
// become underscores, and a hash of the name follows. Names without such characters stay as they are.
func identifier(name string) string {
	plain := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, name)
	if plain == name && !hashed.MatchString(name) {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return plain + "-" + hex.EncodeToString(sum[:4])
}

// spaced is identifier for names that are distinguished within a device, where a space may become an underscore: traffic_light.
func spaced(name string) string { return identifier(strings.ReplaceAll(name, " ", "_")) }

// slug makes an identifier one of Home Assistant's entity ids: lower-case letters, digits and single underscores.
func slug(id string) string {
	words := strings.FieldsFunc(strings.ToLower(id), func(r rune) bool { return r == '_' || r == '-' })
	return strings.Join(words, "_")
}

// abbreviations are parts of sensor names that are written in capitals.
var abbreviations = [...]string{"cpu", "gpu", "cv", "dla", "emc", "soc", "tj", "nvme", "pmic", "ao", "ddr", "npu"}

// sensorTitle is title for the name of a machine's sensor, such as cpu or GPU-thermal.
func sensorTitle(name string) string {
	words := strings.Fields(title(name))
	for i, word := range words {
		if slices.Contains(abbreviations[:], strings.ToLower(strings.TrimRight(word, "0123456789"))) {
			words[i] = strings.ToUpper(word)
		}
	}
	return strings.Join(words, " ")
}

// title converts a name to a title: words separated by spaces, the first letter a capital.
func title(name string) string {
	words := strings.FieldsFunc(name, func(r rune) bool { return r == '_' || r == '-' || unicode.IsSpace(r) || unicode.IsControl(r) })
	text := strings.Join(words, " ")
	first, size := utf8.DecodeRuneInString(text)
	if size == 0 {
		return name
	}
	return string(unicode.ToUpper(first)) + text[size:]
}

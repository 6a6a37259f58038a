package config

import (
	"encoding/json"
	"reflect"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// Schema is a JSON Schema (draft 2020-12) of the configuration file, for editors: every key with its meaning, its kind and its default.
func Schema() ([]byte, error) {
	c := Default()
	flags := pflag.NewFlagSet("schema", pflag.ContinueOnError)
	Flags(c, flags, Everything())
	c.Device = "" // the host's name is no default of the file
	s := schema{help: map[string]string{}, defaults: map[string]any{}}
	values := map[string]reflect.Value{}
	leaves(reflect.ValueOf(c).Elem(), "", values)
	for _, setting := range settings(c) {
		s.help[setting.key] = setting.help
		if value, known := values[setting.key]; known && !value.IsZero() {
			s.defaults[setting.key] = value.Interface()
		}
	}
	for list, all := range map[string][]listSetting{"cameras": cameraSettings(), "cascade": cascadeSettings()} {
		for _, setting := range all {
			s.help[list+"[]."+setting.key] = setting.help
		}
	}
	made := s.of(reflect.TypeFor[Config](), "")
	made["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	made["title"] = "edge-infer configuration"
	made["$comment"] = "made by edge-infer config schema"
	text, err := json.MarshalIndent(made, "", "  ")
	return append(text, '\n'), err
}

// leaves gathers the single values of a configuration by their key.
func leaves(value reflect.Value, key string, all map[string]reflect.Value) {
	if value.Kind() != reflect.Struct {
		all[key] = value
		return
	}
	for i := range value.NumField() {
		if name, _, _ := strings.Cut(value.Type().Field(i).Tag.Get("yaml"), ","); name != "" && name != "-" {
			leaves(value.Field(i), strings.TrimPrefix(key+"."+name, "."), all)
		}
	}
}

type schema struct {
	help     map[string]string // by key; [] behind a list, * for any name
	defaults map[string]any
}

// of is the schema of what a key holds.
func (s *schema) of(t reflect.Type, key string) map[string]any {
	made := map[string]any{}
	switch {
	case t == reflect.TypeFor[time.Duration]():
		made["type"], made["pattern"] = "string", `^[0-9.]+(ns|us|µs|ms|s|m|h)([0-9.]+(ns|us|µs|ms|s|m|h))*$|^\$\{.*\}$`
	case t == reflect.TypeFor[Preprocess]():
		made["type"] = []string{"string", "object"}
	default:
		s.kind(t, key, made)
	}
	if help := s.help[key]; help != "" {
		made["description"] = help
	}
	if value, known := s.defaults[key]; known {
		made["default"] = value
	}
	return made
}

func (s *schema) kind(t reflect.Type, key string, made map[string]any) {
	switch t.Kind() {
	case reflect.Pointer:
		s.kind(t.Elem(), key, made)
	case reflect.Bool:
		made["type"] = "boolean"
	case reflect.Int, reflect.Int64:
		made["type"] = "integer"
	case reflect.Float32, reflect.Float64:
		made["type"] = "number"
	case reflect.Slice:
		made["type"], made["items"] = "array", s.of(t.Elem(), key+"[]")
	case reflect.Map:
		made["type"], made["additionalProperties"] = "object", s.of(t.Elem(), key+".*")
	case reflect.Struct:
		properties := map[string]any{}
		for i := range t.NumField() {
			if name, _, _ := strings.Cut(t.Field(i).Tag.Get("yaml"), ","); name != "" && name != "-" {
				properties[name] = s.of(t.Field(i).Type, strings.TrimPrefix(key+"."+name, "."))
			}
		}
		made["type"], made["properties"], made["additionalProperties"] = "object", properties, false
	default:
		made["type"] = []string{"string", "number", "boolean"} // YAML reads a name like 0 or no as something else
	}
}

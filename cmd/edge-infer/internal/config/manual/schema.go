// Package manual makes the documents of the configuration from its table of settings: the reference page and the JSON Schema.
package manual

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
)

// Schema is a JSON Schema (draft 2020-12) of the configuration file, for editors: every key with its meaning, its kind and its default.
func Schema() ([]byte, error) {
	s := schema{help: map[string]string{}, defaults: map[string]any{}}
	all, err := config.Settings()
	if err != nil {
		return nil, err
	}
	for _, setting := range all {
		s.help[setting.Key] = setting.Help
		var value any
		if err := yaml.Unmarshal([]byte(setting.Default), &value); err != nil {
			return nil, fmt.Errorf("default of %s: %w", setting.Key, err)
		}
		if setting.Key != config.NameKey { // the host's name is no default of the file
			s.defaults[setting.Key] = value
		}
	}
	for _, list := range config.Lists() {
		for _, setting := range list.Settings {
			s.help[list.Key+"[]."+setting.Key] = setting.Help
		}
	}
	made := s.of(reflect.TypeFor[config.Config](), "")
	made["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	made["title"] = "edge-infer configuration"
	made["$comment"] = "made by edge-infer config schema"
	text, err := json.MarshalIndent(made, "", "  ")
	return append(text, '\n'), err
}

type schema struct {
	help     map[string]string // by key; [] behind a list, * for any name
	defaults map[string]any
}

// of returns the schema of a key's value.
func (s *schema) of(t reflect.Type, key string) map[string]any {
	made := map[string]any{}
	switch {
	case t == reflect.TypeFor[time.Duration]():
		made["type"], made["pattern"] = "string", `^[0-9.]+(ns|us|µs|ms|s|m|h)([0-9.]+(ns|us|µs|ms|s|m|h))*$|^\$\{.*\}$`
	case t == reflect.TypeFor[config.Preprocess]():
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

// Package catalogue describes models by name: their task, publisher, licence and the hash of their file. Store keeps the downloaded files.
package catalogue

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/edge-infer/edge-infer/engine"
)

// Entry is a model of the catalogue.
type Entry struct {
	Name string `yaml:"name" json:"name"`
	// Finds lists purposes, such as people; each selects the first entry that has it.
	Finds     []string `yaml:"finds" json:"finds"`
	Task      string   `yaml:"task" json:"task"`
	Classes   string   `yaml:"classes" json:"classes"`
	Licence   string   `yaml:"licence" json:"licence"` // SPDX identifier
	Publisher string   `yaml:"publisher" json:"publisher"`
	URL       string   `yaml:"url" json:"url"`
	SHA256    string   `yaml:"sha256" json:"sha256"`
	Bytes     int64    `yaml:"bytes" json:"bytes"`
	Input     string   `yaml:"input" json:"input"` // width x height in pixels
	Layout    string   `yaml:"layout" json:"layout"`
	// Preprocess is the preprocessing of its images, Labels the name of its list of classes.
	Preprocess engine.Preprocess `yaml:"preprocess" json:"preprocess"`
	Labels     string            `yaml:"labels" json:"labels"`
	Accuracy   string            `yaml:"accuracy" json:"accuracy"` // as published, with the source
	// Tried is how far the entry was tried before it came into the catalogue.
	Tried string `yaml:"tried" json:"tried"`
}

//go:embed catalogue.yaml
var catalogue []byte

// Entries returns the catalogue.
func Entries() []Entry {
	var all []Entry
	if err := yaml.Unmarshal(catalogue, &all); err != nil {
		panic(fmt.Sprintf("the catalogue of this program cannot be read: %v", err)) // a test reads it
	}
	return all
}

// Lookup returns the entry of that name, or the first one that finds it: people, vehicles, faces.
func Lookup(name string) (Entry, error) {
	all := Entries()
	at := slices.IndexFunc(all, func(e Entry) bool { return e.Name == name })
	if at < 0 {
		at = slices.IndexFunc(all, func(e Entry) bool { return slices.Contains(e.Finds, name) })
	}
	if at >= 0 {
		return all[at], nil
	}
	var names, purposes []string
	for _, e := range all {
		names = append(names, e.Name)
		for _, purpose := range e.Finds {
			if !slices.Contains(purposes, purpose) {
				purposes = append(purposes, purpose)
			}
		}
	}
	near := slices.IndexFunc(names, func(known string) bool { return len(name) > 2 && strings.Contains(known, strings.ToLower(name)) })
	if near >= 0 {
		return Entry{}, fmt.Errorf("model %q is not in the catalogue, did you mean %s?", name, names[near])
	}
	return Entry{}, fmt.Errorf("model %q is not in the catalogue (names: %s; or what it finds: %s)", name, strings.Join(names, ", "),
		strings.Join(purposes, ", "))
}

// labels returns a list of class names, one per line; empty for "none".
func labels(list string) string {
	switch list {
	case "coco":
		return engine.COCOLabels()
	case "face", "person":
		return "background\n" + list + "\n"
	}
	return ""
}

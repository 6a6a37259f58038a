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
	Name      string `yaml:"name" json:"name"`
	Task      string `yaml:"task" json:"task"`
	Classes   string `yaml:"classes" json:"classes"`
	Licence   string `yaml:"licence" json:"licence"` // SPDX identifier
	Publisher string `yaml:"publisher" json:"publisher"`
	URL       string `yaml:"url" json:"url"`
	SHA256    string `yaml:"sha256" json:"sha256"`
	Bytes     int64  `yaml:"bytes" json:"bytes"`
	Input     string `yaml:"input" json:"input"` // width x height in pixels
	Layout    string `yaml:"layout" json:"layout"`
	// Preprocess is the preprocessing of its images, Labels the name of its list of classes.
	Preprocess engine.Preprocess `yaml:"preprocess" json:"preprocess"`
	Labels     string            `yaml:"labels" json:"labels"`
	Accuracy   string            `yaml:"accuracy" json:"accuracy"` // as published, with the source
}

var (
	//go:embed catalogue.yaml
	catalogue []byte
	//go:embed coco.txt
	coco string
)

// Entries returns the catalogue.
func Entries() []Entry {
	var all []Entry
	if err := yaml.Unmarshal(catalogue, &all); err != nil {
		panic(fmt.Sprintf("the catalogue of this program cannot be read: %v", err)) // a test reads it
	}
	return all
}

// Lookup returns the entry of that name.
func Lookup(name string) (Entry, error) {
	all := Entries()
	at := slices.IndexFunc(all, func(e Entry) bool { return e.Name == name })
	if at < 0 {
		var names []string
		for _, e := range all {
			names = append(names, e.Name)
		}
		return Entry{}, fmt.Errorf("model %q is not in the catalogue (%s)", name, strings.Join(names, ", "))
	}
	return all[at], nil
}

// labels returns a list of class names, one per line.
func labels(list string) string {
	if list == "coco" {
		return coco
	}
	return ""
}

package config

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/edge-infer/edge-infer/engine"
)

// Preprocess is YAML: the name of a preset, or fields of an engine.Preprocess.
type Preprocess string

// UnmarshalYAML keeps a group of settings as it stands in the file.
func (p *Preprocess) UnmarshalYAML(group []byte) error {
	if yaml.Unmarshal(group, (*string)(p)) != nil {
		*p = Preprocess(group)
	}
	return nil
}

// Images returns the preprocessing; the zero value leaves it to the model file.
func (m *Model) Images() (engine.Preprocess, error) {
	return engine.ParsePreprocess([]byte(m.Preprocess))
}

// Sides parses the input size of a model with open height and width, in pixels; zeros leave it to the model and the cameras.
func (m *Model) Sides() (height, width int, err error) {
	if m.Size == "" {
		return 0, 0, nil
	}
	first, second, two := strings.Cut(strings.ToLower(m.Size), "x")
	if !two {
		second = first
	}
	for _, side := range []struct {
		text string
		to   *int
	}{{first, &height}, {second, &width}} {
		*side.to, err = strconv.Atoi(side.text)
		if err != nil || *side.to < 1 || *side.to > engine.MaxSide {
			return 0, 0, must(m.Size, fmt.Sprintf("must be a side or HEIGHTxWIDTH, of 1 to %d pixels", engine.MaxSide))
		}
	}
	return height, width, nil
}

// LastActivation returns the last activation of a classifier; empty leaves it to the model file.
func (m *Model) LastActivation() engine.Activation {
	if m.Activation == Auto {
		return ""
	}
	return engine.Activation(m.Activation)
}

func (m *Model) checkPreprocess() error {
	_, err := m.Images()
	return err
}

func (m *Model) checkSize() error {
	_, _, err := m.Sides()
	return err
}

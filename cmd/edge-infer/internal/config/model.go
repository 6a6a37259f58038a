package config

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess/head"
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

// Canonical returns the model with every value as it is written out, so that equal models compare equal.
func (m Model) Canonical() Model {
	m.Layout, m.Activation = cmp.Or(strings.ToLower(m.Layout), Auto), cmp.Or(m.Activation, Auto)
	if height, width, err := m.Sides(); err == nil && height > 0 {
		m.Size = fmt.Sprintf("%dx%d", height, width)
	}
	if images, err := m.Images(); err == nil && !images.IsZero() {
		if text, err := yaml.Marshal(images); err == nil {
			m.Preprocess = Preprocess(text)
		}
	}
	return m
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

func (m *Model) checkLayout() error {
	if _, err := head.ParseLayout(m.Layout); err != nil {
		return must(m.Layout, "is no layout"+hintOf(err))
	}
	return nil
}

// hintOf returns what follows the reason of an error about an unknown layout: the nearest ones, and what lists them.
func hintOf(err error) string {
	if err == nil {
		return ""
	}
	_, hint, _ := strings.Cut(err.Error(), "is not known")
	return hint
}

func (m *Model) checkPreprocess() error {
	_, err := m.Images()
	return err
}

func (m *Model) checkSize() error {
	_, _, err := m.Sides()
	return err
}

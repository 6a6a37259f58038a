package engine

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/goccy/go-yaml"
)

// Properties returns m as the key-value pairs that ParseMetadata reads, for model files and server configurations.
func (m Metadata) Properties() (map[string]string, error) {
	properties := map[string]string{}
	set := func(key, value string) {
		if value != "" {
			properties[key] = value
		}
	}
	set("task", string(m.Task))
	set(ActivationProperty, string(m.Activation))
	for key, n := range map[string]int{"stride": m.Stride, "batch": m.Batch} {
		if n > 0 {
			properties[key] = strconv.Itoa(n)
		}
	}
	if m.Width > 0 && m.Height > 0 {
		properties["imgsz"] = fmt.Sprintf("[%d, %d]", m.Height, m.Width)
	}
	if m.Keypoints > 0 {
		properties["kpt_shape"] = fmt.Sprintf("[%d, %d]", m.Keypoints, m.KeypointNumbers)
	}
	if len(m.KeypointNames) > 0 {
		byClass := map[string][]string{}
		for class, names := range m.KeypointNames {
			if names != nil {
				byClass[strconv.Itoa(class)] = names
			}
		}
		names, err := json.Marshal(byClass)
		if err != nil {
			return nil, fmt.Errorf("names of keypoints: %w", err)
		}
		properties["kpt_names"] = string(names)
	}
	if m.EndToEnd {
		properties["end2end"] = "true"
	}
	if len(m.Labels) > 0 {
		names, err := json.Marshal(m.Labels)
		if err != nil {
			return nil, fmt.Errorf("labels: %w", err)
		}
		properties["names"] = string(names)
	}
	if !m.Preprocess.IsZero() {
		text, err := yaml.Marshal(m.Preprocess)
		if err != nil {
			return nil, fmt.Errorf("preprocess: %w", err)
		}
		properties[PreprocessProperty] = string(text)
	}
	return properties, nil
}

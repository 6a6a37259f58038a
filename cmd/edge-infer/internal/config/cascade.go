package config

import (
	"fmt"
	"strings"
	"time"

	"github.com/edge-infer/edge-infer/postprocess/head"
)

// Cascade is a secondary network, which processes objects found by the first one. Zero fields have the defaults of package cascade.
type Cascade struct {
	Name   string `yaml:"name"`
	Model  string `yaml:"model"`
	Labels string `yaml:"labels,omitempty"` // file
	Layout string `yaml:"layout,omitempty"`
	// On lists the labels of the first network whose objects are processed; all if empty.
	On []string `yaml:"on,omitempty"`
	// MinSize is in pixels, Margin a share of the box's sides.
	MinSize    int           `yaml:"min_size,omitempty"`
	Margin     float64       `yaml:"margin,omitempty"`
	Every      time.Duration `yaml:"every,omitempty"`
	Votes      int           `yaml:"votes,omitempty"`
	Confidence float64       `yaml:"confidence,omitempty"`
	Batch      int           `yaml:"batch,omitempty"`
	Vector     bool          `yaml:"vector,omitempty"`
	Remember   time.Duration `yaml:"remember,omitempty"`
}

// DefaultCascadeBatch is the number of objects per request; mostVotes is the limit of package cascade.
const DefaultCascadeBatch, mostVotes = 16, 32

// cascadeSettings lists every value of a cascade in the order of the default file.
func cascadeSettings() []ListSetting {
	return []ListSetting{
		{Key: "name", Example: "colour", Help: "name of the attribute", Common: true},
		{
			Key: "model", Example: "colour.onnx", Common: true,
			Help: "classifier, text recognition (layout ctc) or embedding (layout embedding): ONNX file or TensorRT engine",
		},
		{Key: "labels", Example: "colours.txt", Help: "file of class names (lines, YAML or JSON), or coco; empty: the model's own"},
		{Key: "layout", Example: Auto, Help: "output layout, as model.layout"},
		{Key: "on", Example: "[car, truck]", Help: "labels of the first model; empty: all", Common: true},
		{Key: "min_size", Example: "16", Help: "shortest side of an object in pixels"},
		{Key: "margin", Example: "0.1", Help: "context around the box, as a share of its sides"},
		{Key: "every", Example: "500ms", Help: "shortest interval between two inferences on an object"},
		{Key: "votes", Example: "5", Help: "number of most recent results that vote"},
		{
			Key: "confidence", Example: "0.5",
			Help: "mean score from which an attribute is reported; for an embedding the cosine similarity of one object, default 0.7",
		},
		{Key: "batch", Example: fmt.Sprint(DefaultCascadeBatch), Help: "largest batch of objects"},
		{Key: "remember", Example: "30s", Help: "longest absence after which an embedding identifies an object again"},
		{Key: "vector", Example: "false", Help: "add the embedding to update and end events"},
	}
}

// ParseCascades reads --cascade values, each NAME=MODEL.
func ParseCascades(values []string) ([]Cascade, error) {
	cascades := make([]Cascade, 0, len(values))
	for _, value := range values {
		name, model, ok := splitNamed(value)
		if !ok {
			return nil, fmt.Errorf("cascade %q must be NAME=MODEL.onnx, with the name that the attribute gets", value)
		}
		cascades = append(cascades, Cascade{Name: name, Model: model})
	}
	return cascades, nil
}

// cascadeMistakes returns the errors in the settings of secondary networks.
func (c *Config) cascadeMistakes() (found []mistake) {
	seen := map[string]bool{}
	for i := range c.Cascade {
		e := element{key: fmt.Sprintf("cascade[%d]", i)}
		c.Cascade[i].check(&e, seen)
		found = append(found, e.found...)
		seen[c.Cascade[i].Name] = true
	}
	return found
}

// check validates a secondary network; seen holds the names of those before it.
func (c *Cascade) check(e *element, seen map[string]bool) {
	_, _, simple := splitNamed(c.Name + "=x")
	e.must(simple, "name", c.Name, "must be a name of letters, digits, - and _")
	e.must(c.Name == "" || !seen[c.Name], "name", c.Name, "is used twice")
	e.must(strings.TrimSpace(c.Model) != "", "model", "", "must be an ONNX file or a TensorRT engine")
	e.must(c.MinSize >= 0, "min_size", c.MinSize, "must be 1 or more")
	e.must(c.Margin >= 0 && c.Margin <= 1, "margin", c.Margin, "must be 0 to 1")
	e.must(c.Every >= 0, "every", c.Every, "must not be negative")
	e.must(c.Remember >= 0, "remember", c.Remember, "must not be negative")
	e.must(c.Votes >= 0 && c.Votes <= mostVotes, "votes", c.Votes, fmt.Sprintf("must be 1 to %d", mostVotes))
	e.must(c.Confidence >= 0 && c.Confidence < 1, "confidence", c.Confidence, "must be 0 or more and under 1")
	e.must(c.Batch >= 0 && c.Batch <= 256, "batch", c.Batch, "must be 1 to 256")
	_, err := head.ParseLayout(c.Layout)
	e.must(err == nil, "layout", c.Layout, "is no layout"+hintOf(err))
}

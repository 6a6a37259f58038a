package config

import (
	"fmt"
	"strings"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config/naming"
	"github.com/edge-infer/edge-infer/postprocess/head"
)

// Cascade is a second network that looks at what the first one found. What is zero has the default of package cascade.
type Cascade struct {
	Name   string `yaml:"name"`
	Model  string `yaml:"model"`
	Labels string `yaml:"labels,omitempty"` // file
	Layout string `yaml:"layout,omitempty"`
	// On are the labels of the first network whose objects are looked at, all when empty.
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

// DefaultCascadeBatch is how many objects one request holds, mostVotes is that of package cascade.
const DefaultCascadeBatch, mostVotes = 16, 32

// cascadeSettings lists every value of a cascade in the order of the default file.
func cascadeSettings() []ListSetting {
	return []ListSetting{
		{"name", "colour", "name of the attribute"},
		{"model", "colour.onnx", "a classifier, a reader of text (layout ctc) or an embedding (layout embedding): ONNX file or TensorRT engine"},
		{"labels", "colours.txt", "file with one label a line, instead of the model's own"},
		{"layout", Auto, "what the outputs mean, as model.layout"},
		{"on", "[car, truck]", "labels of the first model whose objects it looks at; empty: all"},
		{"min_size", "16", "shorter side in pixels that an object must have"},
		{"margin", "0.1", "share of the box's sides that is shown around it"},
		{"every", "500ms", "shortest time between two looks at an object"},
		{"votes", "5", "how many of the latest looks decide"},
		{"confidence", "0.5", "mean score from which an attribute is told; of an embedding the cosine of two looks at one object, else 0.7"},
		{"batch", fmt.Sprint(DefaultCascadeBatch), "objects in one inference at most"},
		{"remember", "30s", "for so long an object that was lost is known again by an embedding"},
		{"vector", "false", "the vector of an embedding goes out with the events update and end"},
	}
}

// ParseCascades reads --cascade values, each NAME=MODEL.
func ParseCascades(values []string) ([]Cascade, error) {
	cascades := make([]Cascade, 0, len(values))
	for _, value := range values {
		name, model, ok := naming.Simple(value)
		if !ok {
			return nil, fmt.Errorf("cascade %q must be NAME=MODEL.onnx, with the name that the attribute gets", value)
		}
		cascades = append(cascades, Cascade{Name: name, Model: model})
	}
	return cascades, nil
}

// cascadeMistakes are those of the second networks.
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

// check finds what is wrong with a cascade; seen holds the names of those before it.
func (c *Cascade) check(e *element, seen map[string]bool) {
	_, _, simple := naming.Simple(c.Name + "=x")
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
	e.must(err == nil, "layout", c.Layout, "must be "+alternatives(head.Layouts()))
}

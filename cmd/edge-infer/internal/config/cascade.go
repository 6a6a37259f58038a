package config

import (
	"fmt"
	"strings"
	"time"

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
		{"confidence", "0.5", "mean score from which an attribute is told"},
		{"batch", fmt.Sprint(DefaultCascadeBatch), "objects in one inference at most"},
		{"vector", "false", "the vector of an embedding goes out with the events update and end"},
	}
}

// cascadesComment is the list of cascades, as an example behind comment signs.
func cascadesComment() string {
	const about = "# Second networks that look at the objects which the model finds; only name and model are needed."
	return listComment("cascade", about, cascadeSettings())
}

// ParseCascades reads --cascade values, each NAME=MODEL.
func ParseCascades(values []string) ([]Cascade, error) {
	cascades := make([]Cascade, 0, len(values))
	for _, value := range values {
		match := named.FindStringSubmatch(value)
		if match == nil {
			return nil, fmt.Errorf("cascade %q must be NAME=MODEL.onnx, with the name that the attribute gets", value)
		}
		cascades = append(cascades, Cascade{Name: match[1], Model: match[2]})
	}
	return cascades, nil
}

// cascadeMistakes gives at most one for each cascade.
func (c *Config) cascadeMistakes() (found []mistake) {
	seen := map[string]bool{}
	for i := range c.Cascade {
		cascade := &c.Cascade[i]
		if name, err := cascade.mistake(seen); err != nil {
			key := fmt.Sprintf("cascade[%d].%s", i, name)
			found = append(found, mistake{key, wrong(key, err)})
		}
		seen[cascade.Name] = true
	}
	return found
}

// mistake is the first one of a cascade, with the name of its setting; seen holds the names of those before it.
func (c *Cascade) mistake(seen map[string]bool) (name string, err error) {
	switch {
	case !named.MatchString(c.Name + "=x"):
		return "name", must(c.Name, "must be a name of letters, digits, - and _")
	case seen[c.Name]:
		return "name", must(c.Name, "is used twice")
	case strings.TrimSpace(c.Model) == "":
		return "model", must("", "must be an ONNX file or a TensorRT engine")
	case c.MinSize < 0:
		return "min_size", must(c.MinSize, "must be 1 or more")
	case !(c.Margin >= 0 && c.Margin <= 1):
		return "margin", must(c.Margin, "must be 0 to 1")
	case c.Every < 0:
		return "every", must(c.Every, "must be positive")
	case c.Votes < 0 || c.Votes > mostVotes:
		return "votes", must(c.Votes, fmt.Sprintf("must be 1 to %d", mostVotes))
	case !(c.Confidence >= 0 && c.Confidence < 1):
		return "confidence", must(c.Confidence, "must be 0 or more and under 1")
	case c.Batch < 0 || c.Batch > 256:
		return "batch", must(c.Batch, "must be 1 to 256")
	}
	if _, err := head.ParseLayout(c.Layout); err != nil {
		return "layout", must(c.Layout, "must be "+alternatives(head.Layouts()))
	}
	return "", nil
}

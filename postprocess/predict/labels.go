package predict

import (
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
)

// distinctLabels makes the labels of all classes different, because counts, topics and zones use them as keys: an empty label becomes the
// class number, and a repeated one gets a number appended. The labels of text readers are an alphabet and remain as they are.
func distinctLabels(labels []string) []string {
	taken := make(map[string]bool, len(labels))
	for _, label := range labels {
		taken[label] = true
	}
	seen := make(map[string]bool, len(labels))
	all := slices.Clone(labels)
	for class, label := range labels {
		if label == "" {
			label = postprocess.Label(nil, class)
		}
		base := label
		for i := 2; seen[label] || label != labels[class] && taken[label]; i++ {
			label = base + " " + strconv.Itoa(i)
		}
		seen[label] = true
		all[class] = label
	}
	return all
}

// unnamedClass watches for class numbers beyond the names. Such detections are kept, as "class N".
type unnamedClass struct {
	names int                    // 0 for a model without names
	warn  func(class, names int) // nil for nobody
	found atomic.Bool
}

// check warns of the first class without a name.
func (u *unnamedClass) check(detections []postprocess.Detection) {
	if u.names == 0 || u.warn == nil {
		return
	}
	for i := range detections {
		if class := detections[i].Class; class >= u.names && !u.found.Swap(true) {
			u.warn(class, u.names)
		}
	}
}

// warnUnnamed logs a class without a name and the file that lacks it.
func (o *Options) warnUnnamed(class, names int) {
	hint := "add the missing names to " + o.LabelsFile
	if o.LabelsFile == "" {
		hint = "the names in " + o.Path + " are too few: provide all of them with --labels FILE"
	}
	o.logger().Warn("class number beyond the names", "model", o.Path, "class", class, "names", names, "hint", hint)
}

// warnIgnored logs the entries of the model's metadata that could not be read, in one line.
func (o *Options) warnIgnored(entries []engine.Ignored) {
	if len(entries) == 0 {
		return
	}
	texts := make([]string, len(entries))
	for i, entry := range entries {
		texts[i] = entry.String()
	}
	o.logger().Warn("metadata of the model that cannot be read is ignored", "model", o.Path, "entries", strings.Join(texts, "; "))
}

package predict

import (
	"slices"
	"strconv"

	"github.com/edge-infer/edge-infer/postprocess"
)

// distinctLabels gives every class a label of its own, because counts, topics and zones go by labels: an empty one is the class's number, and one
// that another class has before it gets a number behind it. The labels of text readers are an alphabet and stay as they are.
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

package predict

import (
	"slices"
	"strconv"

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

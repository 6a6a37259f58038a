package zone

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/edge-infer/edge-infer/postprocess"
)

// Filter selects the detections to be used.
type Filter struct {
	// Labels lists the classes to be used, all if empty.
	Labels []string `json:"labels" yaml:"labels,omitempty"`
	// Limits by label; "" applies to all other labels.
	Limits map[string]Limits `json:"limits" yaml:"limits,omitempty"`
	// Masks are ignored areas: objects whose bottom centre lies in one are dropped.
	Masks [][]Point `json:"masks" yaml:"masks,omitempty"`
}

// Limits bounds the detections of one label; zero fields have no effect.
type Limits struct {
	// MinArea and MaxArea bound the area of the box: a share of the image up to 1, square pixels above.
	MinArea float64 `json:"min_area" yaml:"min_area,omitempty"`
	MaxArea float64 `json:"max_area" yaml:"max_area,omitempty"`
	// MinRatio and MaxRatio bound width divided by height.
	MinRatio float64 `json:"min_ratio" yaml:"min_ratio,omitempty"`
	MaxRatio float64 `json:"max_ratio" yaml:"max_ratio,omitempty"`
	// MinScore is the minimum score.
	MinScore float32 `json:"min_score" yaml:"min_score,omitempty"`
}

func (f *Filter) check(labels []string) error {
	if err := checkLabels(f.Labels, labels); err != nil {
		return err
	}
	for label, l := range f.Limits {
		if label != "" && !slices.Contains(labels, label) {
			return fmt.Errorf("limits for label %q, which the model does not have", label)
		}
		if !(l.MinArea >= 0 && l.MaxArea >= 0 && l.MinRatio >= 0 && l.MaxRatio >= 0 && l.MinScore >= 0 && l.MinScore <= 1) {
			return fmt.Errorf("limits of label %q are out of range: %+v", label, l)
		}
		if (l.MaxArea > 0 && (l.MinArea <= 1) == (l.MaxArea <= 1) && l.MinArea > l.MaxArea) || (l.MaxRatio > 0 && l.MinRatio > l.MaxRatio) {
			return fmt.Errorf("limits of label %q leave nothing: a minimum is above its maximum", label)
		}
	}
	return nil
}

// classLimits are the limits of a class for a known image size.
type classLimits struct {
	wanted             bool
	minArea, maxArea   float64
	minRatio, maxRatio float64
	minScore           float32
}

// prepare returns the limits by class.
func (f *Filter) prepare(labels []string, width, height float64) []classLimits {
	table := make([]classLimits, len(labels))
	set := classSet(f.Labels, labels)
	pixels := func(area float64) float64 {
		if area <= 1 {
			return area * width * height
		}
		return area
	}
	for class, label := range labels {
		l, ok := f.Limits[label]
		if !ok {
			l = f.Limits[""]
		}
		table[class] = classLimits{
			wanted: has(set, class), minArea: pixels(l.MinArea), maxArea: cmp.Or(pixels(l.MaxArea), math.Inf(1)),
			minRatio: l.MinRatio, maxRatio: cmp.Or(l.MaxRatio, math.Inf(1)), minScore: l.MinScore,
		}
	}
	return table
}

func (l *classLimits) admits(d *postprocess.Detection) bool {
	area, ratio := float64(d.Area()), float64(d.Width())/float64(d.Height())
	return l.wanted && d.Score >= l.minScore && area >= l.minArea && area <= l.maxArea && ratio >= l.minRatio && ratio <= l.maxRatio
}

// Filter removes the detections that the configuration excludes, in place and in order, and returns the rest. Call it before the tracker.
func (a *Analytics) Filter(detections []postprocess.Detection) []postprocess.Detection {
	kept := detections[:0]
	for i := range detections {
		d := &detections[i]
		if d.Class >= 0 && d.Class < len(a.limits) {
			if !a.limits[d.Class].admits(d) {
				continue
			}
		} else if len(a.Config.Filter.Labels) > 0 {
			continue
		}
		if a.masked(Bottom.onBox(d.Box)) {
			continue
		}
		kept = append(kept, *d)
	}
	return kept
}

func (a *Analytics) masked(p Point) bool {
	for _, mask := range a.masks {
		if mask.contains(p) {
			return true
		}
	}
	return false
}

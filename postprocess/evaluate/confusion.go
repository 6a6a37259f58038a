package evaluate

import (
	"cmp"
	"slices"

	"github.com/edge-infer/edge-infer/postprocess"
)

// Confusion is a confusion matrix. Boxes are paired by descending overlap regardless of class; unpaired boxes are background on one side.
// The zero value is ready; one goroutine at a time may use it.
type Confusion struct {
	// IoU is the minimum overlap of a pair, 0 for 0.5.
	IoU float32

	counts map[[2]int]int // by labelled and predicted class
	pairs  []pair
	used   [2][]bool
}

// Background is the class of missed objects and false alarms.
const Background = -1

// Add compares the detections of one image. Detections in a crowd of their class do not count.
func (c *Confusion) Add(truths []Truth, detections []postprocess.Detection) {
	if c.counts == nil {
		c.counts = make(map[[2]int]int)
	}
	limit := cmp.Or(c.IoU, 0.5)
	c.pairs = c.pairs[:0]
	c.used[0] = append(c.used[0][:0], make([]bool, len(truths))...)
	c.used[1] = append(c.used[1][:0], make([]bool, len(detections))...)
	for i := range truths {
		for j := range detections {
			if truths[i].Crowd {
				continue
			}
			if iou := truths[i].IoU(detections[j].Box); iou >= limit {
				c.pairs = append(c.pairs, pair{iou, i, j})
			}
		}
	}
	slices.SortStableFunc(c.pairs, func(x, y pair) int { return cmp.Compare(y.iou, x.iou) })
	for _, p := range c.pairs {
		if !c.used[0][p.reference] && !c.used[1][p.candidate] {
			c.used[0][p.reference], c.used[1][p.candidate] = true, true
			c.counts[[2]int{truths[p.reference].Class, detections[p.candidate].Class}]++
		}
	}
	for i, used := range c.used[0] {
		if !used && !truths[i].Crowd {
			c.counts[[2]int{truths[i].Class, Background}]++
		}
	}
	for j, used := range c.used[1] {
		if !used && !inCrowd(truths, &detections[j], float64(limit)) {
			c.counts[[2]int{Background, detections[j].Class}]++
		}
	}
}

// inCrowd reports whether a share of a detection lies in a crowd of its class.
func inCrowd(truths []Truth, f *postprocess.Detection, share float64) bool {
	return slices.ContainsFunc(truths, func(t Truth) bool { return t.Crowd && t.Class == f.Class && overlapOf(f.Box, &t) >= share })
}

// Matrix returns the occurring classes in ascending order, and the counts by labelled and predicted class. The last row and column are the
// background.
func (c *Confusion) Matrix() (classes []int, counts [][]int) {
	for key := range c.counts {
		classes = append(classes, key[:]...)
	}
	slices.Sort(classes)
	classes = slices.DeleteFunc(slices.Compact(classes), func(class int) bool { return class == Background })
	order := append(slices.Clone(classes), Background)
	for _, truth := range order {
		row := make([]int, len(order))
		for at, found := range order {
			row[at] = c.counts[[2]int{truth, found}]
		}
		counts = append(counts, row)
	}
	return classes, counts
}

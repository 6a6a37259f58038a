package head

import (
	"fmt"
	"math"
	"slices"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/scan"
)

// LayoutYOLOMaps is two maps for each scale: [B,4*bins,h,w] with the distances of a cell's middle to the left, top, right and bottom side
// in cells, each as the logits of 0, 1 ... bins-1 (Li et al. 2020, Generalized Focal Loss) or, with one bin, as a number; and [B,nc,h,w]
// with the scores of the classes, before or after their sigmoid; the values decide. Both may be one map, and maps may be interleaved,
// [B,h,w,C]. A third map with the sum of each cell's scores is not needed. Source: the post-processing of rknn_model_zoo, and the end
// nodes of networks in hailo_model_zoo.
const LayoutYOLOMaps Layout = "yolo-maps"

// Bins of published networks: YOLOv8 and its successors, and YOLOv6 trained with distillation.
const (
	yolov8Bins = 16
	yolov6Bins = 17
)

type yoloMaps struct {
	scoredLabels
	noBoxMap
	interleaved, joined bool // of this network
}

func (yoloMaps) describe() Description {
	return Description{
		Layout: LayoutYOLOMaps, Task: engine.Detect, Form: "[B,64,h,w] with [B,nc,h,w] for each scale",
		Networks: "YOLOv6, v8, 11 and others before decoding, as exported for RKNN and Hailo", Gives: boxesWithClasses,
		ScanFormat: scan.Format{Raw: true},
	}
}

func (h yoloMaps) configure(n *network) head {
	for _, h.interleaved = range []bool{false, true} {
		for _, h.joined = range []bool{false, true} {
			if h.findOutputs(n) != nil {
				return h
			}
		}
	}
	return h
}

// findOutputs returns the maps of boxes from the finest scale on, then those of scores unless they are the same.
func (h yoloMaps) findOutputs(n *network) [][]int {
	scales := n.scaleMaps(h.interleaved)
	if h.joined {
		if all := onlyMaps(scales); all != nil && scales[0][0].channels > 4*yolov8Bins {
			return [][]int{all}
		}
		return nil
	}
	for _, bins := range []int{yolov8Bins, yolov6Bins, 1} {
		if all := pairMaps(scales, 4*bins); all != nil {
			return [][]int{all}
		}
	}
	return nil
}

// pairMaps returns for each scale the map with that many channels, and then the map after it, or the scale's first one if it is the last.
// It returns nil unless at least two scales have both.
func pairMaps(scales [][]scaleMap, channels int) []int {
	var boxes, scores []int
	for _, maps := range scales {
		at := slices.IndexFunc(maps, func(m scaleMap) bool { return m.channels == channels })
		if at >= 0 && len(maps) > 1 {
			boxes = append(boxes, maps[at].output)
			scores = append(scores, maps[(at+1)%len(maps)].output)
		}
	}
	if len(boxes) < 2 {
		return nil
	}
	return slices.Concat(boxes, scores)
}

// onlyMaps returns the only map of each scale, nil unless there is one and all have as many channels.
func onlyMaps(scales [][]scaleMap) (all []int) {
	for _, maps := range scales {
		if len(maps) > 1 || maps[0].channels != scales[0][0].channels {
			return nil
		}
		all = append(all, maps[0].output)
	}
	return all
}

// yoloLevel is one scale of yoloMaps.
type yoloLevel struct {
	boxes  engine.BoxMap
	bins   int
	width  int // in cells
	height int
	first  int // index of its first box
}

// level measures a scale by the shapes of the outputs that findOutputs lists.
func (h yoloMaps) level(outputs []int, shapes [][]int64, number int) (l yoloLevel, ok bool) {
	boxes, ok := newScaleMap(outputs[number], shapes[number], h.interleaved)
	if !ok {
		return yoloLevel{}, false
	}
	l = yoloLevel{bins: yolov8Bins, width: boxes.width, height: boxes.height}
	l.boxes = engine.BoxMap{
		Boxes: boxes.numbers(0), Scores: boxes.numbers(4 * yolov8Bins), Count: boxes.cells(), Classes: boxes.channels - 4*yolov8Bins,
	}
	if h.joined {
		return l, l.boxes.Classes > 0
	}
	other := h.scales(len(shapes)) + number
	scores, ok := newScaleMap(outputs[other], shapes[other], h.interleaved)
	l.bins = boxes.channels / 4
	l.boxes.Scores = scores.numbers(0)
	l.boxes.Classes = scores.channels
	known := l.bins == 1 || l.bins == yolov8Bins || l.bins == yolov6Bins
	return l, ok && known && boxes.channels == 4*l.bins && boxes.width == scores.width && boxes.height == scores.height
}

// scales returns the number of scales for that many outputs.
func (h yoloMaps) scales(outputs int) int {
	if h.joined {
		return outputs
	}
	return outputs / 2
}

func (h yoloMaps) measure(shapes [][]int64) (s sizes, err error) {
	var outputs [2 * maxScales]int // of no importance here
	if len(shapes) > len(outputs) {
		return sizes{}, mismatch(h, shapes)
	}
	for number := range h.scales(len(shapes)) {
		l, ok := h.level(outputs[:], shapes, number)
		if !ok || number > 0 && (l.boxes.Classes != s.classes || l.bins != s.extra) {
			return sizes{}, mismatch(h, shapes)
		}
		s.boxes += int64(l.boxes.Count)
		s.classes = l.boxes.Classes
		s.extra = l.bins
	}
	return s, nil
}

// recognise takes distributions as evidence. Distances as numbers are YOLOv6's where a map of sums follows in the order of its export:
// maps of YOLOX and FCOS have as many channels.
func (h yoloMaps) recognise(n *network, m *match) (evidence, doubt string) {
	widths := make([]int, h.scales(len(m.outputs)))
	for number := range widths {
		l, _ := h.level(m.outputs, n.shapes(m.outputs), number)
		widths[number] = l.width
	}
	sums := h.haveSums(n, m)
	switch {
	case h.joined && n.labels == 0:
		return "", fmt.Sprintf("no class names in the file: name its %s with --labels FILE",
			plural(m.classes, "class"))
	case h.joined && n.labels != m.classes:
		return "", ""
	case m.extra == 1 && (!sums || m.classes == 1):
		return "", "the 4 numbers of a cell could be centre and sides as in YOLOX (confirm distances with --layout yolo-maps)"
	case !sums && len(n.outputs) > len(m.outputs):
		return "", fmt.Sprintf("there are further outputs (--layout %s accepts them anyway)", LayoutYOLOMaps)
	}
	return fmt.Sprintf("maps of %s, with the distances of each side and the scores of %s", n.strides(widths), plural(m.classes, "class")), ""
}

// haveSums reports whether the outputs are a map of boxes, one of scores and one of their sums for each scale, in this order.
func (h yoloMaps) haveSums(n *network, m *match) bool {
	count := h.scales(len(m.outputs))
	if h.joined || len(n.outputs) != 3*count {
		return false
	}
	for number, boxes := range m.outputs[:count] {
		sums, ok := newScaleMap(0, n.outputs[min(boxes+2, len(n.outputs)-1)].Shape, h.interleaved)
		if boxes != 3*number || m.outputs[count+number] != boxes+1 || !ok || sums.channels != 1 {
			return false
		}
	}
	return true
}

func (h yoloMaps) newDecoder(s *settings) decoder {
	d := &yoloMapsDecoder{boxes: newBoxes(s), head: h}
	d.logits.Open(s.columnMinScores(), scan.Format{Raw: true, Logits: true, MultiLabel: s.MultiLabel})
	return d
}

type yoloMapsDecoder struct {
	boxes
	head   yoloMaps
	logits scan.Scanner // for scores before their sigmoid
	levels []yoloLevel
}

func (d *yoloMapsDecoder) decode(in *input, dst []postprocess.Detection) ([]postprocess.Detection, error) {
	d.levels = d.levels[:0]
	first := 0
	for number := range d.head.scales(len(in.shapes)) {
		l, _ := d.head.level(in.match.outputs, in.shapes, number)
		l.first = first
		first += l.boxes.Count
		d.levels = append(d.levels, l)
	}
	scanner := &d.scanner
	if last := &d.levels[len(d.levels)-1]; anyNegative(in.tensor(last.boxes.Scores.Output), last) {
		scanner = &d.logits
	}
	d.beginGather(first)
	for i := range d.levels {
		l := &d.levels[i]
		if err := d.scanMap(in, &l.boxes, scanner, l.first); err != nil {
			return dst, err
		}
	}
	if in.scoresOnly {
		return dst, nil
	}
	d.place(&in.stats, func(c *scan.Candidate) { c.Box = d.corners(in, int(c.Index)) })
	return d.finish(in, dst), nil
}

// anyNegative reports whether a score of a scale is below 0, as nearly all logits are.
func anyNegative(scores []float32, l *yoloLevel) bool {
	at := &l.boxes.Scores
	for class := range int64(l.boxes.Classes) {
		for box := range int64(l.boxes.Count) {
			if scores[at.Offset+box*at.Step+class*at.Next] < scan.MinScore {
				return true
			}
		}
	}
	return false
}

// corners returns a box in input pixels.
func (d *yoloMapsDecoder) corners(in *input, box int) postprocess.Box {
	l := &d.levels[len(d.levels)-1]
	for i := len(d.levels) - 1; box < l.first; i-- {
		l = &d.levels[i-1]
	}
	cell := box - l.first
	at := &l.boxes.Boxes
	data := in.tensor(at.Output)[at.Offset+int64(cell)*at.Step:]
	var sides [4]float32 // left, top, right and bottom, in cells
	for i := range sides {
		sides[i] = expectedDistance(data[int64(i*l.bins)*at.Next:], int(at.Next), l.bins)
	}
	x, y := float32(cell%l.width)+0.5, float32(cell/l.width)+0.5
	strideX, strideY := float32(d.match.width/l.width), float32(d.match.height/l.height)
	return postprocess.Box{X1: (x - sides[0]) * strideX, Y1: (y - sides[1]) * strideY, X2: (x + sides[2]) * strideX, Y2: (y +
		sides[3]) * strideY}
}

// expectedDistance returns the mean of 0, 1 ... bins-1 weighted by the softmax of that many logits, which lie next numbers apart. A single
// number is the distance itself.
func expectedDistance(logits []float32, next, bins int) float32 {
	if bins == 1 {
		return logits[0]
	}
	highest := float32(math.Inf(-1))
	for i := range bins {
		highest = max(highest, logits[i*next])
	}
	sum, weighted := float32(0), float32(0)
	for i := range bins {
		share := exp(logits[i*next] - highest)
		sum += share
		weighted += share * float32(i)
	}
	return weighted / sum
}

package head

import (
	"fmt"
	"slices"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/scan"
)

// boxes gathers the candidate boxes of an image and turns the best of them into detections: the scratch memory of every head with boxes.
type boxes struct {
	*settings
	suppression suppression
	scanner     scan.Scanner
	candidates  []scan.Candidate
	keys        []uint64
	origins     []int32 // by detection of finish: the index of its box in the output
	centred     bool    // the network gives boxes as centre and sides
}

// suppression decides which of the candidates become detections. They come best first.
type suppression interface {
	// begin starts with another image, whose classes are below count.
	begin(count int)
	// keep reports whether a candidate becomes a detection.
	keep(c *scan.Candidate) bool
}

func newBoxes(s *settings) boxes {
	b := boxes{settings: s, suppression: noSuppression{}}
	if !s.about.NMSFree {
		b.suppression = &greedyNMS{limit: s.IoU, agnostic: s.Agnostic}
	}
	b.centred = s.centred()
	format := s.about.ScanFormat
	format.MultiLabel = s.MultiLabel
	b.scanner.Open(s.columnMinScores(), format)
	return b
}

// centred reports whether the network gives upright boxes as centre and sides.
func (s *settings) centred() bool {
	m := s.match
	m.boxes, m.classes = max(m.boxes, 1), max(m.classes, 1) // where they are open
	numbers, ok := m.head.boxMap(&m)
	return ok && !numbers.Corners && !s.about.ScanFormat.Raw && s.about.Task != engine.OBB
}

// compareCorners counts a box whose centre and sides could be two corners.
func (s *settings) compareCorners(b *postprocess.Box, stats *Stats) {
	const beyond = 1.0 / 8 // of a side of the input
	right, bottom := float32(s.match.width), float32(s.match.height)
	x, y := (b.X1+b.X2)/2, (b.Y1+b.Y2)/2
	width, height := b.X2-b.X1, b.Y2-b.Y1
	if !(x < width && y < height && width <= right*(1+beyond) && height <= bottom*(1+beyond)) {
		return
	}
	stats.LikeCorners++
	if b.X1 < -beyond*right || b.Y1 < -beyond*bottom || b.X2 > (1+beyond)*right || b.Y2 > (1+beyond)*bottom {
		stats.Overhanging++
	}
}

// denseDecoder decodes heads with a box and scores for each anchor.
type denseDecoder struct{ boxes }

func newDenseDecoder(s *settings) decoder { return &denseDecoder{newBoxes(s)} }

func (d *denseDecoder) decode(in *input, dst []postprocess.Detection) ([]postprocess.Detection, error) {
	if err := d.scan(in); err != nil {
		return dst, err
	}
	return d.finish(in, dst), nil
}

// scan takes the boxes of a box map above their minimum scores as candidates.
func (b *boxes) scan(in *input) error {
	m, ok := in.match.head.boxMap(&in.match)
	if !ok {
		return in.mismatch()
	}
	b.beginGather(m.Count)
	return b.scanMap(in, &m, &b.scanner, 0)
}

// scanMap adds the boxes of a box map above their minimum scores to the candidates of beginGather, or counts the map's bad scores if
// nothing else is needed. Its boxes are numbered from first on.
func (b *boxes) scanMap(in *input, m *engine.BoxMap, scanner *scan.Scanner, first int) error {
	coordinates, scores, err := b.beginScan(in, m, scanner)
	if err != nil {
		return err
	}
	if in.scoresOnly {
		in.stats.BadScores += scanner.CountBadScores(scores)
		return nil
	}
	b.gather(coordinates, scores, scanner, int32(first), &in.stats)
	return nil
}

// beginScan prepares the scan of a box map and returns its two parts.
func (b *boxes) beginScan(in *input, m *engine.BoxMap, scanner *scan.Scanner) (coordinates, scores []float32, err error) {
	coordinates = in.tensor(m.Boxes.Output)
	scores = in.tensor(m.Scores.Output)
	columns := m.Scores.Step == 1 && m.Scores.Next == int64(m.Count) && !m.Objectness
	rows := m.Scores.Next == 1 && m.Scores.Step >= int64(m.Classes)
	before := m.Scores.Offset > 0 || !m.Objectness
	if !(columns || rows) || !before ||
		!holds(&m.Boxes, m.Count, 4, len(coordinates)) || !holds(&m.Scores, m.Count, m.Classes, len(scores)) {
		return nil, nil, fmt.Errorf("decode: %w: %d and %d numbers are not %+v", ErrOutput, len(coordinates), len(scores), *m)
	}
	scanner.Begin(m)
	return coordinates[m.Boxes.Offset:], scores[m.Scores.Offset:], nil
}

// holds reports whether the last number lies within so many elements.
func holds(n *engine.Numbers, boxes, numbers, elements int) bool {
	return n.Offset+int64(boxes-1)*n.Step+int64(numbers-1)*n.Next < int64(elements)
}

// beginGather empties the candidates and makes room for those of so many boxes.
func (b *boxes) beginGather(count int) {
	if b.MultiLabel {
		count = 2 * b.MaxCandidates
	}
	b.reserve(count)
	b.candidates = b.candidates[:0:count]
}

// gather scans a box map whose boxes are numbered from first on. A full list is cut to the best MaxCandidates before the scan goes on, so
// that memory is bounded whatever the minimum scores.
func (b *boxes) gather(coordinates, scores []float32, scanner *scan.Scanner, first int32, stats *Stats) {
	list := b.candidates
	for more := true; more; {
		before := len(list)
		list, more = scanner.Next(coordinates, scores, list)
		stats.Candidates += len(list) - before
		if first > 0 {
			for i := before; i < len(list); i++ {
				list[i].Index += first
			}
		}
		if more {
			list = b.best(list)
		}
	}
	b.candidates = list
	bad, invalid := scanner.Skipped()
	stats.BadScores += bad
	stats.Invalid += bad + invalid
}

// countBadScores counts all values of a box map that cannot be scores.
func (b *boxes) countBadScores(in *input, m *engine.BoxMap) (int, error) {
	_, scores, err := b.beginScan(in, m, &b.scanner)
	if err != nil {
		return 0, err
	}
	return b.scanner.CountBadScores(scores), nil
}

// place computes the corners of all candidates in input pixels from their raw numbers, and drops invalid boxes.
func (b *boxes) place(stats *Stats, corners func(c *scan.Candidate)) {
	kept := b.candidates[:0]
	for i := range b.candidates {
		c := &b.candidates[i]
		corners(c)
		if valid(&c.Box) {
			kept = append(kept, *c)
		}
	}
	stats.Invalid += len(b.candidates) - len(kept)
	stats.Candidates -= len(b.candidates) - len(kept)
	b.candidates = kept
}

// list takes rows of so many numbers as candidates: x1, y1, x2, y2 in input pixels, score and class come first. The order of the rows has
// no meaning.
func (b *boxes) list(in *input, rows []float32, width int) error {
	if len(rows)%width != 0 {
		return fmt.Errorf("decode: %w: %d numbers are not rows of %d", ErrOutput, len(rows), width)
	}
	b.beginList(len(rows) / width)
	for row := range len(rows) / width {
		b.take(in, (*[engine.CandidateFields]float32)(rows[row*width:]), int32(row))
	}
	return nil
}

// beginList empties the candidates and makes room for so many.
func (b *boxes) beginList(count int) {
	b.reserve(count)
	b.candidates = b.candidates[:0]
}

// reserve makes room for so many candidates.
func (b *boxes) reserve(count int) {
	if cap(b.candidates) < count {
		b.candidates = make([]scan.Candidate, 0, count)
		b.keys = make([]uint64, 0, count)
	}
}

// take appends a row to the candidates where it is wanted, and counts it. beginList has made room.
func (b *boxes) take(in *input, row *[engine.CandidateFields]float32, index int32) {
	stats := &in.stats
	at := len(b.candidates)
	list := b.candidates[:at+1]
	switch b.classifyRow(row, &list[at]) {
	case rowWanted:
		list[at].Index = index
		b.candidates = list
		stats.Candidates++
	case rowBadScore:
		stats.BadScores++
		stats.Invalid++
	case rowInvalid:
		stats.Invalid++
	}
}

type rowKind uint8

const (
	rowUnwanted rowKind = iota
	rowWanted
	rowBadScore
	rowInvalid
)

// maxClass is above every class number, maxUnnamed above those that the labels do not reach: the network knows more classes than its names
// tell. A higher number shows that the column is none of classes.
const (
	maxClass   = 1 << 20
	maxUnnamed = 1 << 12
)

// classifyRow writes a row to out where it is wanted.
func (b *boxes) classifyRow(row *[engine.CandidateFields]float32, out *scan.Candidate) rowKind {
	score, class := row[4], row[5]
	if b.padding(score) {
		return rowUnwanted
	}
	if !(score >= scan.MinScore && score <= scan.MaxScore && class >= 0 && class < maxClass) || class != float32(int32(class)) {
		return rowBadScore
	}
	out.Box = postprocess.Box{X1: row[0], Y1: row[1], X2: row[2], Y2: row[3]}
	out.Score = score
	out.Class = int32(class)
	number := b.match.numbers.class(int(class))
	threshold := float32(0)
	switch {
	case b.columns > 0 && int(class) >= b.columns, b.classes > 0 && number >= max(b.classes, maxUnnamed):
		return rowBadScore
	case number < 0: // background
		return rowUnwanted
	case number >= b.classes:
		threshold = b.minScore(number)
	default:
		threshold = b.minScores[number]
	}
	if score < threshold {
		return rowUnwanted
	}
	if !valid(&out.Box) {
		return rowInvalid
	}
	return rowWanted
}

// padding reports whether a score alone decides that its row is not wanted: most rows of an end-to-end head are padding.
func (b *boxes) padding(score float32) bool {
	return score < b.MinScore && score >= scan.MinScore && b.ClassMinScores == nil
}

// valid reports whether a box is neither empty nor NaN nor out of range, as the scan in C does.
func valid(b *postprocess.Box) bool {
	const most = scan.MaxCoordinate
	return b.X1 < b.X2 && b.Y1 < b.Y2 && b.X1 > -most && b.Y1 > -most && b.X2 < most && b.Y2 < most
}

// best keeps the MaxCandidates best of the list.
func (b *boxes) best(list []scan.Candidate) []scan.Candidate {
	if len(list) <= b.MaxCandidates {
		return list
	}
	keys := sortKeys(b.keys, list)
	selectSmallest(keys, b.MaxCandidates)
	keys = keys[:b.MaxCandidates]
	// In the order of the list, so that moving to the front never overwrites one that is still to move.
	slices.SortFunc(keys, byIndex)
	for to, key := range keys {
		list[to] = list[uint32(key)]
	}
	return list[:b.MaxCandidates]
}

// finish sorts and suppresses the candidates, and appends the rest to dst, mapped to the source image.
func (b *boxes) finish(in *input, dst []postprocess.Detection) []postprocess.Detection {
	list := b.best(b.candidates)
	stats := in.stats
	stats.Truncated = stats.Candidates - len(list)
	keys := sortKeys(b.keys, list)
	b.suppression.begin(b.classSlots(list))
	b.origins = b.origins[:0]
	width, height := float32(in.width), float32(in.height)
	right, bottom := float32(b.match.width), float32(b.match.height) // of the network's input
	count, sorted := 0, 0
	for i := range keys {
		if i == sorted {
			sorted += sortFront(keys[i:], list, max(i, sortedRun))
		}
		c := &list[uint32(keys[i])]
		if !b.suppression.keep(c) {
			stats.Suppressed++
			continue
		}
		if count == b.Limit {
			stats.Suppressed += len(keys) - i
			stats.Cut = c.Score
			break
		}
		count++
		// A box within the first two pixels is likely given in shares of the input, and read as pixels.
		if c.X2 <= 2 && c.Y2 <= 2 || c.X2 <= 0 || c.Y2 <= 0 || c.X1 >= right || c.Y1 >= bottom {
			stats.OutsideInput++
		}
		if b.centred {
			b.compareCorners(&c.Box, &stats)
		}
		box := in.toSource(c.Box)
		box.X1, box.X2 = max(box.X1, 0), min(box.X2, width)
		box.Y1, box.Y2 = max(box.Y1, 0), min(box.Y2, height)
		if !(box.X1 < box.X2 && box.Y1 < box.Y2) {
			stats.Outside++
			continue
		}
		if len(dst) == cap(dst) {
			dst = slices.Grow(dst, 1)
		}
		dst = dst[:len(dst)+1]
		f := &dst[len(dst)-1] // in place: a literal would be copied
		f.Box = box
		f.Score = c.Score
		f.Class = b.match.numbers.class(int(c.Class))
		f.Detail = nil
		b.origins = append(b.origins, c.Index)
	}
	in.stats = stats
	return dst
}

// classSlots returns one more than the highest class in the list.
func (b *boxes) classSlots(list []scan.Candidate) int {
	if b.columns > 0 {
		return b.columns
	}
	highest := int32(0)
	for i := range list {
		highest = max(highest, list[i].Class)
	}
	return int(highest) + 1
}

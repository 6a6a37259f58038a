package tile

import (
	"cmp"
	"fmt"
	"image"
	"math"
	"slices"

	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/predict/ensemble"
)

// Thresholds for detections of one object in two views.
const (
	// minAgreement is the IoU from which two detections are one object: of the boxes, or of their parts that both views show.
	minAgreement = 0.5
	// minCovered is the share of a cut detection in a whole one of its class from which it is a piece of that, whatever their scores: the
	// intersection over the smaller area. It does not join detections: that lost F1 on COCO128.
	minCovered = 0.5
)

// margin returns how near to the border of a tile of that side a cut box ends, in pixels: the accuracy of a network.
func margin(side int) int { return max(2, side/128) }

// detected is a detection of one view, in pixels of the image.
type detected struct {
	postprocess.Detection
	view int
	cut  bool // by an inner border of its tile
	// The detections of an object are a ring.
	object, next int32
}

// pair is two detections in different views that may be of one object.
type pair struct {
	a, b     int32
	evidence float32
}

// merger merges the detections of an image's views. Pairs of detections of a class that agree are joined to one object in the order of
// their evidence, agreement times IoU, unless one view shows both objects: what a network separates in one image are two objects, however
// much they overlap. An object takes its detection that no border cuts, a small object that of a tile rather than of the whole image, where
// it is blurred; if all are cut, it takes their union. Pieces of an object that another view shows whole, detected with another class or
// size, are dropped last.
type merger struct {
	shared     int             // pixels that neighbours share; set once, as is fuser
	fuser      *ensemble.Fuser // fuses the detections of an object; nil takes the best one
	views      [1][]postprocess.Detection
	fused      []postprocess.Detection
	detections []detected // of all views of the request, by view
	starts     []int      // of each view in detections, and the end
	pairs      []pair
	whole      []postprocess.Detection // objects of the image that some view shows whole
}

func (m *merger) open(shared int, method ensemble.Method) error {
	m.shared = shared
	m.fuser = nil
	switch method {
	case ensemble.NMS, "":
		return nil
	case ensemble.WeightedBoxes:
		m.fuser = &ensemble.Fuser{IoU: math.SmallestNonzeroFloat32, UseMaxScore: true} // all detections are of one object
		return m.fuser.Open(1)
	}
	return fmt.Errorf("merging tiles by %q, must be %s or %s", method, ensemble.NMS, ensemble.WeightedBoxes)
}

func (m *merger) begin() {
	m.detections = m.detections[:0]
	m.starts = append(m.starts[:0], 0)
}

// take adds the detections of the next view, which begins there on the image.
func (m *merger) take(found []postprocess.Detection, at image.Point) {
	for i := range found {
		m.detections = append(m.detections, detected{Detection: translated(&found[i], at)})
	}
	m.starts = append(m.starts, len(m.detections))
}

// merge appends the objects of an image of that size to dst, best first, and returns how many detections they are made of. Its views begin
// at first.
func (m *merger) merge(dst []postprocess.Detection, views []view, first int, size image.Point) (objects []postprocess.Detection, found int) {
	from, to := m.starts[first], m.starts[first+len(views)]
	if len(views) == 1 {
		for i := from; i < to; i++ {
			dst = append(dst, m.detections[i].Detection)
		}
		return dst, to - from
	}
	m.link(views, first, size)
	m.join()
	m.whole = m.whole[:0]
	for i := int32(from); i < int32(to); i++ {
		if s := &m.detections[i]; s.object == i && m.choose(i, views, first) {
			m.whole = append(m.whole, s.Detection)
			dst = append(dst, s.Detection)
		}
	}
	for i := int32(from); i < int32(to); i++ {
		if s := &m.detections[i]; s.object == i && s.cut && !m.isRemnant(i, views, first) {
			dst = append(dst, m.combine(i))
		}
	}
	slices.SortStableFunc(dst, func(a, b postprocess.Detection) int { return cmp.Compare(b.Score, a.Score) })
	return dst, to - from
}

// link makes an object of each detection and finds the pairs that agree.
func (m *merger) link(views []view, first int, size image.Point) {
	m.pairs = m.pairs[:0]
	for v := range views {
		for i := m.starts[first+v]; i < m.starts[first+v+1]; i++ {
			s := &m.detections[i]
			s.view = first + v
			s.cut = views[v].cuts(s.Box, size)
			s.object = int32(i)
			s.next = int32(i)
		}
	}
	for v := range views {
		for w := v + 1; w < len(views); w++ {
			if both := views[v].part.Intersect(views[w].part); !both.Empty() {
				m.compare(first+v, first+w, box(both))
			}
		}
	}
	slices.SortFunc(m.pairs, func(p, q pair) int {
		return cmp.Or(cmp.Compare(q.evidence, p.evidence), cmp.Compare(p.a, q.a), cmp.Compare(p.b, q.b))
	})
}

// cuts reports whether a box ends at a border of the view that is not the image's.
func (v *view) cuts(b postprocess.Box, size image.Point) bool {
	near := margin(max(v.part.Dx(), v.part.Dy()))
	return v.part.Min.X > 0 && b.X1 <= float32(v.part.Min.X+near) || v.part.Max.X < size.X && b.X2 >= float32(v.part.Max.X-near) ||
		v.part.Min.Y > 0 && b.Y1 <= float32(v.part.Min.Y+near) || v.part.Max.Y < size.Y && b.Y2 >= float32(v.part.Max.Y-near)
}

// compare finds the pairs of two views that both show that part of the image.
func (m *merger) compare(v, w int, both postprocess.Box) {
	for i := m.starts[v]; i < m.starts[v+1]; i++ {
		a := &m.detections[i]
		clipped := clip(a.Box, both)
		if clipped.X1 >= clipped.X2 || clipped.Y1 >= clipped.Y2 {
			continue
		}
		for j := m.starts[w]; j < m.starts[w+1]; j++ {
			b := &m.detections[j]
			if a.Class != b.Class {
				continue
			}
			whole := a.IoU(b.Box)
			agreement := whole
			if a.cut || b.cut {
				agreement = clipped.IoU(clip(b.Box, both))
			}
			if agreement >= minAgreement {
				m.pairs = append(m.pairs, pair{int32(i), int32(j), agreement * whole})
			}
		}
	}
}

// join joins the pairs to objects.
func (m *merger) join() {
	for _, p := range m.pairs {
		if a, b := m.detections[p.a].object, m.detections[p.b].object; a != b && !m.separate(a, b) {
			for i := m.detections[b].next; m.detections[i].object != a; i = m.detections[i].next {
				m.detections[i].object = a
			}
			m.detections[a].next, m.detections[b].next = m.detections[b].next, m.detections[a].next
		}
	}
}

// separate reports whether a view shows both objects.
func (m *merger) separate(a, b int32) bool {
	for i := m.detections[a].next; ; i = m.detections[i].next {
		for j := m.detections[b].next; ; j = m.detections[j].next {
			if m.detections[i].view == m.detections[j].view {
				return true
			}
			if j == b {
				break
			}
		}
		if i == a {
			return false
		}
	}
}

// choose sets an object's first detection to the best of those that no border cuts, with the highest score of all. It is false if all are
// cut.
func (m *merger) choose(object int32, views []view, first int) bool {
	best, score := int32(-1), float32(0)
	for i := m.detections[object].next; ; i = m.detections[i].next {
		s := &m.detections[i]
		score = max(score, s.Score)
		if !s.cut && (best < 0 || m.better(s, &m.detections[best], views, first)) {
			best = i
		}
		if i == object {
			break
		}
	}
	if best < 0 {
		return false
	}
	found := m.detections[best].Detection
	if m.fuser != nil {
		found = m.fuse(object, best, views, first)
	}
	chosen := &m.detections[object]
	chosen.Detection, chosen.cut = found, false
	chosen.Score = score
	return true
}

// fuse returns the mean of an object's detections that no border cuts: those of tiles, or of the whole image, whichever has the best one.
func (m *merger) fuse(object, best int32, views []view, first int) postprocess.Detection {
	m.views[0] = append(m.views[0][:0], m.detections[best].Detection)
	whole := views[m.detections[best].view-first].whole
	for i := m.detections[object].next; ; i = m.detections[i].next {
		if s := &m.detections[i]; i != best && !s.cut && views[s.view-first].whole == whole {
			m.views[0] = append(m.views[0], s.Detection)
		}
		if i == object {
			break
		}
	}
	if len(m.views[0]) == 1 {
		return m.detections[best].Detection
	}
	m.fused = m.fuser.Fuse(m.fused[:0], m.views[:])
	if len(m.fused) == 0 {
		return m.detections[best].Detection
	}
	return m.fused[0]
}

// better reports whether a shows an object better than b. A tile is better than the whole image for objects that are whole in some tile,
// else the whole image is; among equals the higher score is.
func (m *merger) better(a, b *detected, views []view, first int) bool {
	if ofAll := views[b.view-first].whole; views[a.view-first].whole != ofAll {
		large := max(a.Width(), a.Height(), b.Width(), b.Height()) > float32(m.shared)
		return ofAll != large
	}
	return a.Score > b.Score
}

// combine returns the union of an object that borders cut in every view.
func (m *merger) combine(object int32) postprocess.Detection {
	largest, score, hull := object, float32(0), m.detections[object].Box
	for i := m.detections[object].next; ; i = m.detections[i].next {
		s := &m.detections[i]
		hull = postprocess.Box{X1: min(hull.X1, s.X1), Y1: min(hull.Y1, s.Y1), X2: max(hull.X2, s.X2), Y2: max(hull.Y2, s.Y2)}
		score = max(score, s.Score)
		if s.Area() > m.detections[largest].Area() {
			largest = i
		}
		if i == object {
			break
		}
	}
	f := m.detections[largest].Detection
	f.Score = score
	if f.Detail == nil || m.combineDetail(object, f.Detail) {
		f.Box = hull
	}
	return f
}

// combineDetail changes the details of the largest piece to those of the object: the union of the masks, and each keypoint from the piece
// with the highest score. It is false if that is impossible: the oriented box of one piece does not fit the others.
func (m *merger) combineDetail(object int32, d *postprocess.Detail) bool {
	if d.Oriented != nil {
		return false
	}
	var masks []*postprocess.Mask
	if d.Mask != nil {
		masks = append(masks, d.Mask)
	}
	for i := m.detections[object].next; ; i = m.detections[i].next {
		if piece := m.detections[i].Detail; piece != nil && piece != d {
			if piece.Mask != nil {
				masks = append(masks, piece.Mask)
			}
			for k := range d.Keypoints {
				if k < len(piece.Keypoints) && piece.Keypoints[k].Score > d.Keypoints[k].Score {
					d.Keypoints[k] = piece.Keypoints[k]
				}
			}
		}
		if i == object {
			break
		}
	}
	if d.Mask == nil {
		return true
	}
	joined, fits := ensemble.UnionMask(masks)
	if fits {
		d.Mask = &joined
	}
	return fits
}

// isRemnant reports whether all detections of an object are pieces of others.
func (m *merger) isRemnant(object int32, views []view, first int) bool {
	for i := m.detections[object].next; ; i = m.detections[i].next {
		if s := &m.detections[i]; !m.isPiece(s, box(views[s.view-first].part)) {
			return false
		}
		if i == object {
			return true
		}
	}
}

// isPiece reports whether a detection in that part of the image is a piece of an object that another view shows whole. A sliver is no
// object of its own, whatever its score.
func (m *merger) isPiece(s *detected, part postprocess.Box) bool {
	exact := float32(margin(int(max(part.Width(), part.Height()))))
	sliver := min(s.Width(), s.Height()) <= 2*exact
	for i := range m.whole {
		whole := &m.whole[i]
		if sliver && whole.Class == s.Class && within(s.Box, whole.Box, exact) {
			return true
		}
		shown := clip(whole.Box, part)
		both := clip(shown, s.Box)
		if both.X1 >= both.X2 || both.Y1 >= both.Y2 {
			continue
		}
		same, agrees := whole.Class == s.Class, shown.IoU(s.Box) >= minAgreement
		if agrees && (same || whole.Score >= s.Score) || same && both.Area() >= minCovered*s.Area() {
			return true
		}
	}
	return false
}

// within reports whether a lies in b, enlarged by so many pixels.
func within(a, b postprocess.Box, but float32) bool {
	return a.X1 >= b.X1-but && a.Y1 >= b.Y1-but && a.X2 <= b.X2+but && a.Y2 <= b.Y2+but
}

func box(r image.Rectangle) postprocess.Box {
	return postprocess.Box{X1: float32(r.Min.X), Y1: float32(r.Min.Y), X2: float32(r.Max.X), Y2: float32(r.Max.Y)}
}

// clip returns the part of b in the other box; its corners are in reverse order if there is none.
func clip(b, to postprocess.Box) postprocess.Box {
	return postprocess.Box{X1: max(b.X1, to.X1), Y1: max(b.Y1, to.Y1), X2: min(b.X2, to.X2), Y2: min(b.Y2, to.Y2)}
}

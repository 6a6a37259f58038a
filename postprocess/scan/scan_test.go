package scan

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
)

// Every way in which a map may lie gives the boxes that the map says, whatever the scan's shortcuts.
func TestScanReadsEveryMap(t *testing.T) {
	random := rand.New(rand.NewPCG(11, 12))
	for round := range 600 {
		n, nc := 1+random.IntN(300), 1+random.IntN(90)
		m := engine.BoxMap{Count: n, Classes: nc, Corners: random.IntN(2) == 0, ScaleX: 1, ScaleY: 1}
		if random.IntN(2) == 0 {
			m.ScaleX, m.ScaleY = 640, 384
		}
		count, classes, gap := int64(n), int64(nc), int64(random.IntN(40))
		size := (4+gap+classes)*count + 7
		switch random.IntN(4) {
		case 0: // columns
			m.Boxes, m.Scores = engine.Numbers{Offset: 3, Step: 1, Next: count}, engine.Numbers{Offset: 3 + (4+gap)*count, Step: 1, Next: count}
		case 1: // rows
			m.Boxes, m.Scores = engine.Numbers{Step: 4 + gap + classes, Next: 1}, engine.Numbers{Offset: 4 + gap, Step: 4 + gap + classes, Next: 1}
		case 2: // rows with an objectness
			m.Objectness = true
			m.Boxes, m.Scores = engine.Numbers{Step: 5 + gap + classes, Next: 1}, engine.Numbers{Offset: 5 + gap, Step: 5 + gap + classes, Next: 1}
			size += count
		case 3: // boxes apart
			m.Boxes, m.Scores = engine.Numbers{Step: 4, Next: 1}, engine.Numbers{Offset: 4 * count, Step: classes, Next: 1}
		}
		data := make([]float32, size)
		for i := range data {
			data[i] = random.Float32() * 0.3 // no score reaches the threshold, and most numbers are boxes
		}
		for range random.IntN(60) {
			at := m.Scores.Offset + int64(random.IntN(n))*m.Scores.Step + int64(random.IntN(nc))*m.Scores.Next
			data[at] = 0.5 + 0.6*random.Float32()
		}
		if m.Objectness {
			for box := range count {
				data[m.Scores.Offset+box*m.Scores.Step-1] = []float32{0.1, 0.9, 1, 1.5}[random.IntN(4)]
			}
		}
		want, impossible := plainScan(&m, data, 0.4)
		for _, multi := range []bool{false, true} {
			var s Scanner
			s.Open(slices.Repeat([]float32{0.4}, nc), Format{MultiLabel: multi})
			s.Begin(&m)
			var got []Candidate
			room := make([]Candidate, 0, max(n, 7))
			for more := true; more; {
				var list []Candidate
				list, more = s.Next(data[m.Boxes.Offset:], data[m.Scores.Offset:], room[:0])
				got = append(got, list...)
			}
			if multi {
				require.GreaterOrEqual(t, len(got), len(want), "round %d", round)
				got = bestOfEach(got)
			}
			require.ElementsMatch(t, want, got, "round %d", round)
			require.Equal(t, impossible, s.CountBadScores(data[m.Scores.Offset:]), "round %d", round)
		}
	}
}

// plainScan is what a map says, read number by number; impossible counts scores and objectnesses that are none.
func plainScan(m *engine.BoxMap, data []float32, threshold float32) (list []Candidate, impossible int) {
	none := func(v float32) bool { return !(v >= MinScore && v <= MaxScore) }
	at := func(n engine.Numbers, box, i int) float32 { return data[n.Offset+int64(box)*n.Step+int64(i)*n.Next] }
	for box := range m.Count {
		objectness := float32(1)
		if m.Objectness {
			objectness = at(m.Scores, box, -1)
			if none(objectness) {
				impossible++
			}
		}
		best := Candidate{Class: -1, Index: int32(box)}
		for class := range m.Classes {
			raw := at(m.Scores, box, class)
			if none(raw) {
				impossible++
			}
			if score := objectness * raw; score >= threshold && !none(score) && (best.Class < 0 || score > best.Score) {
				best.Class, best.Score = int32(class), score
			}
		}
		a, b, c, d := m.ScaleX*at(m.Boxes, box, 0), m.ScaleY*at(m.Boxes, box, 1), m.ScaleX*at(m.Boxes, box, 2), m.ScaleY*at(m.Boxes, box, 3)
		best.Box = postprocess.Box{X1: a - c/2, Y1: b - d/2, X2: a + c/2, Y2: b + d/2}
		if m.Corners {
			best.Box = postprocess.Box{X1: a, Y1: b, X2: c, Y2: d}
		}
		if best.Class >= 0 && !none(objectness) && best.X1 < best.X2 && best.Y1 < best.Y2 {
			list = append(list, best)
		}
	}
	return list, impossible
}

// bestOfEach keeps the best class of each box.
func bestOfEach(list []Candidate) []Candidate {
	var kept []Candidate
	seen := map[postprocess.Box]int{}
	for _, c := range list {
		at, known := seen[c.Box]
		if !known {
			seen[c.Box] = len(kept)
			kept = append(kept, c)
		} else if c.Score > kept[at].Score {
			kept[at] = c
		}
	}
	return kept
}

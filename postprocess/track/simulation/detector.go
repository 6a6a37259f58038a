package simulation

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/edge-infer/edge-infer/postprocess"
)

// MinScore is the lowest score of the simulated detector.
const MinScore = 0.1

// detector behaves like a network: the less of a person is visible, the lower the score, the noisier the box and the more it shrinks to the
// visible part; boxes that overlap much are suppressed; and errors persist for some frames.
type detector struct {
	random      *rand.Rand
	night       bool
	bias        []float64 // current detectability of each person, standard normal and slowly changing
	ghosts      []ghost
	ghostDetail *postprocess.Detail // details of a ghost
}

// ghost is a false alarm that persists.
type ghost struct {
	box    postprocess.Box
	score  float64
	frames int
}

func newDetector(random *rand.Rand, night bool, people int) *detector {
	d := &detector{random: random, night: night, bias: make([]float64, people)}
	for i := range d.bias {
		d.bias[i] = random.NormFloat64()
	}
	return d
}

const (
	biasPersistence = 0.85 // share of the bias that is left in the next frame
	nmsThreshold    = 0.7  // IoU at which a box is suppressed
)

func (d *detector) detect(all []figure) []postprocess.Detection {
	for i := range d.bias {
		d.bias[i] = biasPersistence*d.bias[i] + math.Sqrt(1-biasPersistence*biasPersistence)*d.random.NormFloat64()
	}
	var found []postprocess.Detection
	for i := range all {
		f := &all[i]
		score := 0.12 + 0.78*math.Pow(f.Visible, 0.8) + 0.09*d.bias[f.ID-1] + 0.04*d.random.NormFloat64()
		if d.night {
			score -= 0.22 - 0.1*d.bias[f.ID-1]
		}
		if score < MinScore || f.Visible < minVisible/2 || d.random.Float64() < 0.02 {
			continue
		}
		found = append(found, postprocess.Detection{Box: d.box(f), Score: float32(min(score, 0.98)), Detail: f.detail})
	}
	return d.suppress(d.addGhosts(found))
}

// box returns the detected box of a figure.
func (d *detector) box(f *figure) postprocess.Box {
	hidden := 1 - f.Visible
	shrink := float32(0.6 * hidden)
	noise := 0.02 + 0.05*hidden
	if d.night {
		noise *= 1.5
	}
	side := func(whole, seen, length float32) float32 {
		return whole + shrink*(seen-whole) + length*float32(noise*d.random.NormFloat64())
	}
	w, h := f.whole.Width(), min(f.whole.Height(), 3*f.whole.Width())
	b := clip(postprocess.Box{
		X1: side(f.whole.X1, f.seen.X1, w), Y1: side(f.whole.Y1, f.seen.Y1, h/2),
		X2: side(f.whole.X2, f.seen.X2, w), Y2: side(f.whole.Y2, f.seen.Y2, h/2),
	})
	return postprocess.Box{X1: b.X1, Y1: b.Y1, X2: max(b.X2, b.X1+4), Y2: max(b.Y2, b.Y1+8)}
}

// addGhosts adds false alarms.
func (d *detector) addGhosts(found []postprocess.Detection) []postprocess.Detection {
	if d.random.Float64() < 0.04 {
		x, y, h := d.random.Float32()*Width, d.random.Float32()*Height*3/4, 80+200*d.random.Float32()
		d.ghosts = append(d.ghosts, ghost{
			box: clip(postprocess.Box{X1: x, Y1: y, X2: x + h/3, Y2: y + h}), score: 0.15 + 0.5*d.random.Float64(), frames: 1 + d.random.IntN(15),
		})
	}
	for i := range d.ghosts {
		g := &d.ghosts[i]
		g.frames--
		score := g.score + 0.1*d.random.NormFloat64()
		if score < MinScore {
			continue
		}
		off := func() float32 { return float32(2 * d.random.NormFloat64()) }
		b := g.box
		found = append(found, postprocess.Detection{
			Box:   postprocess.Box{X1: b.X1 + off(), Y1: b.Y1 + off(), X2: b.X2 + 8 + off(), Y2: b.Y2 + 16 + off()},
			Score: float32(score), Detail: d.ghostDetail,
		})
	}
	d.ghosts = slices.DeleteFunc(d.ghosts, func(g ghost) bool { return g.frames <= 0 })
	return found
}

// suppress is greedy NMS.
func (d *detector) suppress(found []postprocess.Detection) []postprocess.Detection {
	slices.SortFunc(found, func(a, b postprocess.Detection) int { return cmp.Compare(b.Score, a.Score) })
	kept := found[:0]
	for _, f := range found {
		if !slices.ContainsFunc(kept, func(k postprocess.Detection) bool { return k.IoU(f.Box) > nmsThreshold }) {
			kept = append(kept, f)
		}
	}
	return kept
}

package simulation

import (
	"math"
	"math/rand/v2"

	"github.com/edge-infer/edge-infer/postprocess"
)

// The embeddings resemble those of an OSNet x0.25 for the people of PETS09-S2L1: two images of one person have a cosine of 0.93 from one
// frame to the next, 0.84 after two seconds and 0.75 in the long run, two persons 0.44, and one pair in a hundred 0.67.
const (
	embeddingSize = 32
	sharedPart    = 0.44 // of the cosine: common to all people
	identityPart  = 0.55 // of the rest: constant
	posturePart   = 0.32 // of the rest: changes slowly with posture and light
	postureTime   = 3.0  // seconds
)

// embedder simulates embeddings.
type embedder struct {
	random     *rand.Rand
	everyone   []float64
	background []float64 // of obstacles
	people     []identity
	at         float64
}

type identity struct{ own, posture []float64 }

func newEmbedder(seed uint64, people int) *embedder {
	l := &embedder{random: rand.New(rand.NewPCG(seed, 99))}
	l.everyone, l.background = l.direction(), l.direction()
	for range people {
		l.people = append(l.people, identity{l.direction(), l.direction()})
	}
	return l
}

// direction returns a random vector of length about 1.
func (l *embedder) direction() []float64 {
	v := make([]float64, embeddingSize)
	for i := range v {
		v[i] = l.random.NormFloat64() / math.Sqrt(embeddingSize)
	}
	return v
}

// update sets the embeddings of figures at a time. The embedding of a partly hidden person also contains that of the occluder.
func (l *embedder) update(at float64, all []figure) {
	left := math.Exp((l.at - at) / postureTime)
	l.at = at
	for i := range l.people {
		p, fresh := l.people[i].posture, l.direction()
		for k := range p {
			p[k] = left*p[k] + math.Sqrt(1-left*left)*fresh[k]
		}
	}
	for i := range all {
		f := &all[i]
		seen, noise := l.person(f.ID), l.direction()
		before := l.background
		if o := occluder(f, all); o != nil {
			before = l.person(o.ID)
		}
		for k := range seen {
			seen[k] += math.Sqrt((1-sharedPart)*(1-identityPart-posturePart)) * noise[k]
			seen[k] = f.Visible*seen[k] + (1-f.Visible)*before[k]
		}
		f.detail = &postprocess.Detail{Embedding: unit(seen)}
	}
}

// person returns the embedding of a person without noise.
func (l *embedder) person(id int) []float64 {
	v := make([]float64, embeddingSize)
	p := &l.people[id-1]
	for k := range v {
		own := math.Sqrt((1-sharedPart)*identityPart) * p.own[k]
		posture := math.Sqrt((1-sharedPart)*posturePart) * p.posture[k]
		v[k] = math.Sqrt(sharedPart)*l.everyone[k] + own + posture
	}
	return v
}

// occluder returns the person that hides most of a figure, or nil.
func occluder(f *figure, all []figure) *figure {
	var most *figure
	best := float32(0)
	for i := range all {
		if o := &all[i]; o.depth < f.depth && o.whole.IoU(f.whole) > best {
			most, best = o, o.whole.IoU(f.whole)
		}
	}
	return most
}

func unit(v []float64) []float32 {
	length := 0.0
	for _, x := range v {
		length += x * x
	}
	to := make([]float32, len(v))
	for i, x := range v {
		to[i] = float32(x / math.Sqrt(length))
	}
	return to
}

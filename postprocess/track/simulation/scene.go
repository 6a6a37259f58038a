// Package simulation simulates pedestrians in front of a surveillance camera and an imperfect detector, for measuring trackers.
package simulation

import (
	"cmp"
	"math"
	"math/rand/v2"
	"time"

	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/track"
)

// Scene is a square with pedestrians. The same scene and seed give the same video.
type Scene struct {
	Name        string
	People      int
	Rate        float64 // frames per second
	Length      time.Duration
	Pillars     int     // upright obstacles that hide people
	Pan         bool    // the camera turns to another direction every other second, as a PTZ camera does
	Shake       bool    // the camera's pole swings in the wind
	Night       bool    // low scores, and detections are missing in runs of frames
	Painted     bool    // frames have images
	PillarWidth float64 // in metres; 0 for thin pillars that cause short occlusions only
	Embeddings  bool    // detections have embeddings
}

// Scenes returns the scenes on which trackers are compared.
func Scenes() []Scene {
	const short, long = 20 * time.Second, 60 * time.Second
	return []Scene{
		{Name: "crowd26", People: 26, Rate: 30, Length: short},
		{Name: "crowd40", People: 40, Rate: 30, Length: short},
		{Name: "lowrate", People: 26, Rate: 5, Length: long},
		{Name: "pan", People: 26, Rate: 30, Length: short, Pan: true},
		{Name: "shake", People: 26, Rate: 30, Length: short, Shake: true},
		{Name: "pillars", People: 26, Rate: 30, Length: short, Pillars: 5},
		{Name: "night", People: 26, Rate: 30, Length: short, Night: true},
	}
}

// OcclusionScenes returns scenes in which people are hidden for longer than motion can be predicted.
func OcclusionScenes() []Scene {
	const length = 60 * time.Second
	return []Scene{
		{Name: "walls", People: 16, Rate: 30, Length: length, Pillars: 3, PillarWidth: 2, Embeddings: true},
		{Name: "walls40", People: 40, Rate: 30, Length: length / 2, Pillars: 3, PillarWidth: 2, Embeddings: true},
	}
}

// Width and Height are the image size in pixels.
const Width, Height = 1920, 1080

// Person is the ground truth of a person that is at least partly visible.
type Person struct {
	ID      int
	Box     postprocess.Box // of the whole person, clipped at the image's edges
	Visible float64         // share of the whole box that is neither hidden nor outside the image
}

// Frame is one frame of a video.
type Frame struct {
	At         time.Duration // since the first frame
	Truth      []Person
	Detections []postprocess.Detection // of the simulated detector, with scores from MinScore
	Camera     track.Affine            // motion of the background since the previous frame
	// Image is the grey camera image of ImageWidth x ImageHeight; nil if the scene is not painted.
	Image []byte
}

// minVisible is the minimum visible share of a person in the ground truth.
const minVisible = 0.1

// Video simulates a scene. Camera motion is exact.
func (s Scene) Video(seed uint64) []Frame {
	random := rand.New(rand.NewPCG(seed, uint64(s.People)))
	square := newSquare(random, s.People)
	pose := newMount(random, s)
	detector := newDetector(random, s.Night, s.People)
	frames := make([]Frame, 0, int(s.Length.Seconds()*s.Rate))
	var painter *painter
	if s.Painted {
		painter = newPainter(seed)
	}
	var looker *embedder
	if s.Embeddings {
		looker = newEmbedder(seed, s.People)
		detector.ghostDetail = &postprocess.Detail{Embedding: unit(looker.background)}
	}
	before := pose.camera()
	for range cap(frames) {
		at := float64(len(frames)) / s.Rate
		for square.at < at {
			square.step()
		}
		for pose.at < at {
			pose.step()
		}
		now := pose.camera()
		frame := Frame{At: time.Duration(at * float64(time.Second)), Camera: now.motionSince(before)}
		all := s.project(&now, square)
		if looker != nil {
			looker.update(at, all)
		}
		frame.Detections = detector.detect(all)
		if painter != nil {
			frame.Image = painter.paint(&now, all, s.Night)
		}
		for _, p := range all {
			if p.Visible >= minVisible {
				frame.Truth = append(frame.Truth, p.Person)
			}
		}
		frames = append(frames, frame)
		before = now
	}
	return frames
}

// figure is a person or obstacle on the image.
type figure struct {
	Person
	whole, seen postprocess.Box // all of it, and its visible part
	depth       float64         // metres from the camera
	detail      *postprocess.Detail
}

// project projects the people and computes the visible part of each.
func (s Scene) project(c *camera, q *square) []figure {
	var all []figure
	for i := range q.walkers {
		w := &q.walkers[i]
		if box, depth, ok := c.projectBox(w.x, w.z, w.width(q.at), w.height); ok {
			all = append(all, figure{Person: Person{ID: i + 1}, whole: box, depth: depth})
		}
	}
	pillars := make([]figure, 0, s.Pillars)
	for i := range s.Pillars {
		x, z := float64(i-s.Pillars/2)*2.6, 9+float64(i%2)
		if box, depth, ok := c.projectBox(x, z, cmp.Or(s.PillarWidth, 0.7), 5); ok {
			pillars = append(pillars, figure{whole: box, depth: depth})
		}
	}
	seen := all[:0]
	for i := range all {
		f := all[i]
		f.Visible, f.seen = visible(&f, all, pillars)
		f.Box = clip(f.whole)
		if f.Box.Width() > 8 && f.Box.Height() > 16 {
			seen = append(seen, f)
		}
	}
	return seen
}

// visible samples a figure and returns its visible share and the box around it.
func visible(f *figure, people, pillars []figure) (float64, postprocess.Box) {
	const across, down = 8, 16
	shown := 0
	seen := postprocess.Box{X1: math.MaxFloat32, Y1: math.MaxFloat32}
	stepX, stepY := f.whole.Width()/across, f.whole.Height()/down
	for j := range down {
		for i := range across {
			x, y := f.whole.X1+(float32(i)+0.5)*stepX, f.whole.Y1+(float32(j)+0.5)*stepY
			if x < 0 || y < 0 || x >= Width || y >= Height || hidden(f, people, x, y, 0.85) || hidden(f, pillars, x, y, 1) {
				continue
			}
			shown++
			seen.X1, seen.Y1 = min(seen.X1, x-stepX/2), min(seen.Y1, y-stepY/2)
			seen.X2, seen.Y2 = max(seen.X2, x+stepX/2), max(seen.Y2, y+stepY/2)
		}
	}
	return float64(shown) / (across * down), seen
}

// hidden reports whether a nearer figure covers a point; figures cover that share of their boxes' width.
func hidden(f *figure, others []figure, x, y float32, share float32) bool {
	for i := range others {
		o := &others[i]
		side := (1 - share) / 2 * o.whole.Width()
		if o.depth < f.depth && x > o.whole.X1+side && x < o.whole.X2-side && y > o.whole.Y1 && y < o.whole.Y2 {
			return true
		}
	}
	return false
}

func clip(b postprocess.Box) postprocess.Box {
	return postprocess.Box{X1: max(b.X1, 0), Y1: max(b.Y1, 0), X2: min(b.X2, Width), Y2: min(b.Y2, Height)}
}

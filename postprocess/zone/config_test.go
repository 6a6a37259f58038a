package zone

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/postprocess"
)

func square(size float64) []Point { return []Point{{0, 0}, {size, 0}, {size, size}, {0, size}} }

func TestConfigErrors(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		config Config
		want   string
	}{
		{Config{Width: 640}, "zones: image of 640x0; give both sides in pixels, or none for coordinates from 0 to 1"},
		{Config{Zones: make([]Zone, 65)}, "zones: 65 zones, 0 lines and 0 masks, at most 64 of each"},
		{Config{Zones: []Zone{{Points: square(1)}}}, `zone "": needs a name`},
		{Config{Zones: []Zone{{Name: "a\nb", Points: square(1)}}}, `zone "a\nb": the name contains unprintable characters`},
		{Config{Zones: []Zone{{Name: "a/b", Points: square(1)}}}, `zone "a/b": the name becomes part of an MQTT topic and cannot contain / + #`},
		{Config{Zones: []Zone{{Name: "a", Points: square(1)}, {Name: "a", Points: square(1)}}}, `zone "a": the name is used twice`},
		{Config{Zones: []Zone{{Name: "a", Points: square(1)[:2]}}}, `zone "a": needs 3 to 64 points, has 2`},
		{Config{Zones: []Zone{{Name: "a", Points: square(1.2)}}}, `zone "a": point 2 (1.2, 0) is outside the image`},
		{Config{Zones: []Zone{{Name: "a", Points: []Point{{nan, 0}, {1, 0}, {1, 1}}}}}, `zone "a": point 1 (NaN, 0) is outside the image`},
		{Config{Width: 640, Height: 480, Zones: []Zone{{Name: "a", Points: square(500)}}}, `zone "a": point 3 (500, 500) is outside the image`},
		{Config{Zones: []Zone{{Name: "a", Points: []Point{{0, 0}, {1, 1}, {1, 0}, {0, 1}}}}}, `zone "a": edges 1 and 3 cross`},
		{Config{Zones: []Zone{{Name: "a", Points: []Point{{0, 0}, {1, 0}, {0.5, 0}}}}}, `zone "a": edges 1 and 2 cross`},
		{Config{Zones: []Zone{{Name: "a", Points: []Point{{0, 0}, {0, 0}, {1, 1}}}}}, `zone "a": edges 1 and 2 cross`},
		{
			Config{Zones: []Zone{{Name: "a", Points: square(1), Labels: []string{"cat"}}}},
			`zone "a": label "cat" is not one of the model's: bolt, nut, gear`,
		},
		{Config{Zones: []Zone{{Name: "a", Points: square(1), Anchor: "left"}}}, `zone "a": anchor "left" is not bottom, centre, top, feet, box, mask or a keypoint like left_ankle`},
		{Config{Zones: []Zone{{Name: "a", Points: square(1), Inertia: -1}}}, `zone "a": inertia -1 is not between 0 and 1000`},
		{Config{Zones: []Zone{{Name: "a", Points: square(1), MinTime: -1}}}, `zone "a": min time -1ns is negative`},
		{Config{Zones: []Zone{{Name: "a", Points: square(1), Loiter: -time.Second}}}, `zone "a": loiter time -1s is negative`},
		{Config{Lines: []Line{{Name: "g"}}}, `line "g": both ends are the same point`},
		{
			Config{Zones: []Zone{{Name: strings.Repeat("x", 70_000), Points: square(1)}}},
			`zone "` + strings.Repeat("x", 80) + `": the name has 70000 bytes, at most 128`,
		},
		{Config{Lines: []Line{{Name: " "}}}, `line " ": needs a name`},
		{Config{Lines: []Line{{Name: "g", To: Point{2, 0}}}}, `line "g": to point (2, 0) is outside the image`},
		{Config{Lines: []Line{{Name: "g", From: Point{-1, 0}}}}, `line "g": from point (-1, 0) is outside the image`},
		{Config{Lines: []Line{{Name: "g", To: Point{1, 0}, Direction: "up"}}}, `line "g": direction "up" is not both, in or out`},
		{Config{Lines: []Line{{Name: "g", To: Point{1, 0}, Mode: "lax"}}}, `line "g": mode "lax" is not strict or loose`},
		{Config{Lines: []Line{{Name: "g", To: Point{1, 0}, Anchor: "x"}}}, `line "g": anchor "x" is not bottom, centre, top, feet or a keypoint like left_ankle`},
		{
			Config{Lines: []Line{{Name: "g", To: Point{1, 0}, Labels: []string{"x"}}}},
			`line "g": label "x" is not one of the model's: bolt, nut, gear`,
		},
		{Config{Ground: &Ground{}}, "ground: needs 4 points, or 2 at the ends of a known length; has 0"},
		{
			Config{Ground: &Ground{Points: square(1)[:2], Width: 1, Length: 1}},
			"ground: two points need no width and a length in metres over 0 and at most 100000, have 1 and 1",
		},
		{
			Config{Ground: &Ground{Points: []Point{{0.5, 0.5}, {0.5, 0.5}}, Length: 1}},
			"ground: both ends of the known length are the same point",
		},
		{Config{Ground: &Ground{Points: []Point{{0.5, 0.5}, {2, 0.5}}, Length: 1}}, "ground: point 2 (2, 0.5) is outside the image"},
		{
			Config{Ground: &Ground{Points: []Point{{0, 0}, {1, 1}, {1, 0}, {0, 1}}, Width: 1, Length: 1}},
			"ground: edges 1 and 3 cross; give the corners in order, around the rectangle",
		},
		{Config{Ground: &Ground{Points: square(1)}}, "ground: needs a width and a length in metres over 0 and at most 100000, has 0 and 0"},
		{
			Config{Ground: &Ground{Points: []Point{{0, 0}, {0.5, 0}, {1, 0}, {0, 1}}, Width: 1, Length: 1}},
			"ground: the four points must be the corners of a convex quadrangle",
		},
		{
			Config{Ground: &Ground{Points: []Point{{0, 0}, {1, 0}, {0.1, 0.1}, {0, 1}}, Width: 1, Length: 1}},
			"ground: the four points must be the corners of a convex quadrangle",
		},
		{Config{Filter: Filter{Masks: [][]Point{square(2)}}}, "mask 1: point 2 (2, 0) is outside the image"},
		{Config{Filter: Filter{Labels: []string{"x"}}}, `filter: label "x" is not one of the model's: bolt, nut, gear`},
		{Config{Filter: Filter{Limits: map[string]Limits{"x": {}}}}, `filter: limits for label "x", which the model does not have`},
		{
			Config{Filter: Filter{Limits: map[string]Limits{"": {MinScore: 2}}}},
			`filter: limits of label "" are out of range: {MinArea:0 MaxArea:0 MinRatio:0 MaxRatio:0 MinScore:2}`,
		},
		{
			Config{Filter: Filter{Limits: map[string]Limits{"nut": {MinRatio: 2, MaxRatio: 1}}}},
			`filter: limits of label "nut" leave nothing: a minimum is above its maximum`,
		},
		{Config{Objects: Objects{Score: map[string]float32{"x": 1}}}, `objects: score for label "x", which the model does not have`},
		{Config{Objects: Objects{Score: map[string]float32{"nut": 2}}}, `objects: score 2 of label "nut" is not between 0 and 1`},
		{Config{Objects: Objects{Update: -1}}, "objects: update -1ns is negative"},
	} {
		t.Run(c.want, func(t *testing.T) {
			assert.EqualError(t, c.config.Validate(Names{Labels: labels}), c.want)
		})
	}
	assert.EqualError(t, (&Config{Filter: Filter{Labels: []string{"x"}}}).Validate(Names{}),
		`filter: label "x": the model has no class names; provide them with --labels FILE`)
	assert.EqualError(t, (&Analytics{}).Open(), "open analytics: image of 0x0")
	assert.EqualError(t, (&Analytics{Width: 1, Height: 1, Config: Config{Width: 1}}).Open(),
		"open analytics: zones: image of 1x0; give both sides in pixels, or none for coordinates from 0 to 1")
}

func TestPixelCoordinatesScaleToTheImage(t *testing.T) {
	a := open(t, Config{Width: 500, Height: 250, Zones: []Zone{{Name: "a", Points: []Point{{100, 50}, {200, 50}, {200, 150}}}}})
	assert.Equal(t, polygon{{200, 100}, {400, 100}, {400, 300}}, a.zones[0].outline)
}

func TestPolygon(t *testing.T) {
	// A U: its notch is outside.
	u := polygon{{0, 0}, {30, 0}, {30, 30}, {20, 30}, {20, 10}, {10, 10}, {10, 30}, {0, 30}}
	_, _, tangled := u.selfIntersection()
	assert.False(t, tangled)
	assert.InDelta(t, 700, u.area(), 1e-9)
	for _, p := range []Point{{5, 5}, {15, 5}, {25, 25}, {5, 29}} {
		assert.True(t, u.contains(p), "%v", p)
	}
	for _, p := range []Point{{15, 15}, {15, 29}, {-1, 5}, {31, 5}, {15, 40}} {
		assert.False(t, u.contains(p), "%v", p)
	}
}

func FuzzConfig(f *testing.F) {
	for _, config := range []Config{
		busy(), {}, {Width: 640, Height: 480, Filter: Filter{Limits: map[string]Limits{"nut": {MinArea: 0.1}}, Masks: [][]Point{square(100)}}},
	} {
		text, err := json.Marshal(config)
		require.NoError(f, err)
		f.Add(text, uint64(1))
	}
	f.Add([]byte(`{"zones":[{"name":"a","points":[{"x":0},{"x":1e-300,"y":1},{"x":1}]}]}`), uint64(2))
	f.Fuzz(func(t *testing.T, text []byte, seed uint64) {
		var config Config
		if json.Unmarshal(text, &config) != nil {
			return
		}
		a := &Analytics{Config: config, Labels: labels, Width: 640, Height: 480}
		if a.Open() != nil {
			return
		}
		random := rand.New(rand.NewPCG(seed, 0))
		for frame := range 30 {
			var tracks []postprocess.Track
			var detections []postprocess.Detection
			for id := range uint64(5) {
				track := seen(id+1, random.Float64()*800-80, random.Float64()*600-60, random.IntN(5)-1)
				tracks, detections = append(tracks, track), append(detections, track.Detection)
			}
			a.Filter(detections)
			for _, e := range a.Update(uint64(frame), at(frame*3), tracks).Events {
				if !finite(e.Object.Speed) || e.Dwell < 0 || e.Zone >= len(config.Zones) || e.Line >= len(config.Lines) {
					t.Fatalf("%+v", e)
				}
			}
		}
		a.Finish(30, at(100))
		for _, n := range a.Present() {
			if n != 0 {
				t.Fatal("objects left over")
			}
		}
	})
}

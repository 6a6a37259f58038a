package scene

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t testing.TB, s Scene) (*Scene, []byte) {
	t.Helper()
	require.NoError(t, s.Open())
	return &s, make([]byte, 3*s.Width*s.Height)
}

func TestFramesDependOnSeedSizeAndNumberOnly(t *testing.T) {
	one, a := open(t, Scene{Width: 320, Height: 180, Seed: 7})
	two, b := open(t, Scene{Width: 320, Height: 180, Seed: 7})
	first, err := one.Draw(500, a, 3*320, nil)
	require.NoError(t, err)
	require.NotEmpty(t, first)
	// The second scene comes to the same frame by another way.
	for _, frame := range []int{900, 3, 500} {
		var again []Part
		again, err = two.Draw(frame, b, 3*320, nil)
		require.NoError(t, err)
		assert.Equal(t, frame == 500, bytes.Equal(a, b), "frame %d", frame)
		assert.Equal(t, frame == 500, assert.ObjectsAreEqual(first, again), "truth of frame %d", frame)
	}
	other, c := open(t, Scene{Width: 320, Height: 180, Seed: 8})
	_, err = other.Draw(500, c, 3*320, nil)
	require.NoError(t, err)
	assert.NotEqual(t, a, c)
}

func TestStrideLeavesPaddingAlone(t *testing.T) {
	s, tight := open(t, Scene{Width: 101, Height: 67, Seed: 1})
	_, err := s.Draw(9, tight, 3*101, nil)
	require.NoError(t, err)
	const stride = 320
	wide := bytes.Repeat([]byte{0xa5}, stride*67)
	_, err = s.Draw(9, wide, stride, nil)
	require.NoError(t, err)
	for y := range 67 {
		require.Equal(t, tight[3*101*y:3*101*(y+1)], wide[stride*y:stride*y+3*101], "row %d", y)
		require.Equal(t, bytes.Repeat([]byte{0xa5}, stride-3*101), wide[stride*y+3*101:stride*(y+1)], "padding of row %d", y)
	}
}

// The truth must equal the masks, pixel by pixel.
func exact(t *testing.T, c *canvas, truth []Part) {
	t.Helper()
	covers := func(p placed, x, y int) bool {
		x, y = x-p.x, y-p.y
		return x >= 0 && y >= 0 && x < p.sprite.width && y < p.sprite.height && p.sprite.mask[y*p.sprite.width+x]
	}
	var want []Part
	for n, p := range c.items {
		if p.class == classes {
			continue
		}
		seen, box := 0, Part{ID: p.id, Class: p.class, X0: c.width, Y0: c.height}
		for y := range c.height {
			for x := range c.width {
				if !covers(p, x, y) {
					continue
				}
				hidden := false
				for _, above := range c.items[n+1:] {
					hidden = hidden || covers(above, x, y)
				}
				if !hidden {
					seen++
					box.X0, box.Y0, box.X1, box.Y1 = min(box.X0, x), min(box.Y0, y), max(box.X1, x+1), max(box.Y1, y+1)
				}
			}
		}
		whole := 0
		for _, m := range p.sprite.mask {
			if m {
				whole++
			}
		}
		if seen > 0 {
			box.Visible = float64(seen) / float64(whole)
			want = append(want, box)
		}
	}
	assert.Equal(t, want, truth)
}

func TestTruthIsExact(t *testing.T) {
	s, dst := open(t, Scene{Width: 256, Height: 160, Seed: 3})
	hidden, cut := 0, 0
	for frame := 0; frame < 2000; frame += 97 {
		truth, err := s.Draw(frame, dst, 3*256, nil)
		require.NoError(t, err)
		exact(t, &s.canvas, truth)
		for _, p := range truth {
			inside := p.X0 > 0 && p.Y0 > 0 && p.X1 < 256 && p.Y1 < 160
			if p.Visible < 1 && inside {
				hidden++
			}
			if p.Visible < 1 && !inside {
				cut++
			}
		}
	}
	assert.Positive(t, hidden, "some part lies below another")
	assert.Positive(t, cut, "some part is cut by the image's edge")
}

func TestTruthOfStillsIsExact(t *testing.T) {
	studio := newStudio(newCatalogue(56), 200, 150)
	for n := range uint64(12) {
		truth := studio.shot(5, n)
		exact(t, &studio.canvas, truth)
		assert.LessOrEqual(t, len(truth), crowd)
	}
}

// A part keeps its ID and class while it crosses the image, moves to the right at the belt's speed, and its ID is never given again.
func TestPartsKeepTheirIdentity(t *testing.T) {
	s, dst := open(t, Scene{Width: 240, Height: 160, Seed: 11, Rate: 25})
	type track struct {
		class       Class
		first, last int
		x, y        int // left and top edge when last seen whole
		whole       int // frame of that
	}
	tracks := map[int64]*track{}
	for frame := range 400 {
		truth, err := s.Draw(frame, dst, 3*240, nil)
		require.NoError(t, err)
		for _, p := range truth {
			k := tracks[p.ID]
			if k == nil {
				k = &track{class: p.Class, first: frame, whole: -1}
				tracks[p.ID] = k
			}
			require.Equal(t, k.class, p.Class)
			k.last = frame
			if p.Visible < 1 {
				k.whole = -1
				continue
			}
			if k.whole >= 0 {
				require.Equal(t, k.y, p.Y0)
				require.InDelta(t, float64(frame-k.whole)*s.speed, p.X0-k.x, 1.01)
			}
			k.x, k.y, k.whole = p.X0, p.Y0, frame
		}
	}
	across := int((240+3*s.unit)/s.speed) + 2
	seen := map[Class]int{}
	for id, k := range tracks {
		assert.LessOrEqual(t, k.last-k.first, across, "part %d", id)
		seen[k.class]++
	}
	assert.Len(t, seen, int(classes), "every class passes")
}

func TestDrawAllocatesNothing(t *testing.T) {
	s, dst := open(t, Scene{Width: 320, Height: 240, Seed: 2})
	truth := make([]Part, 0, 64)
	frame := 0
	assert.Zero(t, testing.AllocsPerRun(50, func() {
		truth, _ = s.Draw(frame, dst, 3*320, truth[:0])
		frame += 7
	}))
	assert.NotEmpty(t, truth)
}

func TestAnySize(t *testing.T) {
	for _, size := range [][2]int{{64, 64}, {641, 65}, {65, 641}, {480, 270}} {
		s, dst := open(t, Scene{Width: size[0], Height: size[1], Seed: 4})
		for frame := 0; frame < 3000; frame += 999 {
			truth, err := s.Draw(frame, dst, 3*size[0], nil)
			require.NoError(t, err)
			for _, p := range truth {
				require.True(t, 0 <= p.X0 && p.X0 < p.X1 && p.X1 <= size[0] && 0 <= p.Y0 && p.Y0 < p.Y1 && p.Y1 <= size[1], "%v on %v", p, size)
			}
		}
	}
}

func TestOpenErrors(t *testing.T) {
	for _, c := range []struct {
		scene Scene
		want  string
	}{
		{Scene{Width: 63, Height: 480}, "open scene: image of 63x480, sides must be 64 to 8192 pixels"},
		{Scene{Width: 640, Height: 8193}, "open scene: image of 640x8193, sides must be 64 to 8192 pixels"},
		{Scene{Width: 64, Height: 64, Rate: -1}, "open scene: rate of -1 fps, must be over 0 and at most 1000"},
		{Scene{Width: 64, Height: 64, Rate: 2000}, "open scene: rate of 2000 fps, must be over 0 and at most 1000"},
	} {
		assert.EqualError(t, c.scene.Open(), c.want)
	}
}

func TestDrawErrors(t *testing.T) {
	var closed Scene
	_, err := closed.Draw(0, nil, 0, nil)
	require.EqualError(t, err, "draw scene: not open")
	s, dst := open(t, Scene{Width: 64, Height: 64})
	_, err = s.Draw(-1, dst, 192, nil)
	require.EqualError(t, err, "draw scene: frame number -1 is negative")
	_, err = s.Draw(0, dst[1:], 192, nil)
	require.EqualError(t, err, "draw scene: 12287 bytes with stride 192, an image of 64x64 needs 12288 with stride 192")
	_, err = s.Draw(0, dst, 191, nil)
	require.EqualError(t, err, "draw scene: 12288 bytes with stride 191, an image of 64x64 needs 12288 with stride 192")
}

// Light changes slowly over the stream and never clips it.
func TestLightDrifts(t *testing.T) {
	s, dst := open(t, Scene{Width: 128, Height: 96, Seed: 6, Rate: 10})
	lowest, highest := 255.0, 0.0
	for frame := 0; frame < 300; frame += 10 {
		_, err := s.Draw(frame, dst, 3*128, nil)
		require.NoError(t, err)
		sum := 0
		for _, v := range dst[:3*128*8] { // the rail, on which nothing lies
			sum += int(v)
		}
		mean := float64(sum) / (3 * 128 * 8)
		lowest, highest = min(lowest, mean), max(highest, mean)
	}
	assert.Greater(t, highest/lowest, 1.05)
	assert.Less(t, highest/lowest, 2.0)
}

func TestClassNames(t *testing.T) {
	labels := Labels()
	assert.Equal(t, []string{"bolt", "nut", "washer", "gear", "bearing", "spring"}, labels)
	for n, label := range labels {
		assert.Equal(t, label, Class(n).String())
	}
	assert.Equal(t, "unknown", classes.String())
	labels[0] = "changed"
	assert.Equal(t, "bolt", Bolt.String())
}

func BenchmarkDraw(b *testing.B) {
	s, dst := open(b, Scene{Width: 1280, Height: 720, Seed: 1})
	truth := make([]Part, 0, 64)
	b.ReportAllocs()
	for frame := 0; b.Loop(); frame++ {
		truth, _ = s.Draw(frame, dst, 3*1280, truth[:0])
	}
}

func BenchmarkOpen(b *testing.B) {
	for b.Loop() {
		open(b, Scene{Width: 1280, Height: 720, Seed: 1})
	}
}

func BenchmarkShot(b *testing.B) {
	studio := newStudio(newCatalogue(catalogueResolution), 1280, 720)
	for n := uint64(0); b.Loop(); n++ {
		studio.shot(1, n)
	}
}

package payload

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// jsonDetections is the payload as encoding/json writes it, to compare with.
type jsonDetections struct {
	Version    int             `json:"v"`
	Device     string          `json:"device"`
	Camera     string          `json:"camera"`
	Sequence   uint64          `json:"seq"`
	Time       time.Time       `json:"time"`
	Width      int             `json:"width"`
	Height     int             `json:"height"`
	Latency    float64         `json:"latency_ms"`
	Detections []jsonDetection `json:"detections"`
}

type jsonDetection struct {
	Label string     `json:"label"`
	Class int        `json:"class"`
	Score float64    `json:"score"`
	Box   [4]float64 `json:"box"`
	Track uint64     `json:"track,omitempty"`
}

func mirror(d *Detections, device string) *jsonDetections {
	m := &jsonDetections{
		Version: 1, Device: device, Camera: d.Camera, Sequence: d.Sequence, Time: d.Time, Width: d.Width, Height: d.Height,
		Latency: float64(d.Latency) / float64(time.Millisecond), Detections: []jsonDetection{},
	}
	for _, o := range d.Objects {
		m.Detections = append(m.Detections, jsonDetection{o.Label, o.Class, o.Score, o.Box, o.Track})
	}
	return m
}

// randomFrame has numbers as a network gives them: float32 in all its digits.
func randomFrame(random *rand.Rand, objects int) *Detections {
	labels := []string{"person", "car", "dog", "hot \"dog\"", "Bär\n"}
	d := &Detections{
		Camera: "cam0", Sequence: random.Uint64() >> 40, Time: time.UnixMicro(random.Int64N(4e15)).UTC(), Width: 1920, Height: 1080,
		Latency: time.Duration(random.Int64N(1e9)),
	}
	for range objects {
		class := random.IntN(len(labels))
		o := Detection{Label: labels[class], Class: class, Score: float64(random.Float32()), Track: random.Uint64() >> 52}
		for i := range o.Box {
			o.Box[i] = float64(random.Float32() * 1920)
		}
		d.Objects = append(d.Objects, o)
	}
	return d
}

func TestDetectionsEqualAfterRoundTrip(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var buf []byte
	for i := range 500 {
		d := randomFrame(random, i%30)
		buf = d.AppendJSON(buf[:0], "gate")
		require.True(t, json.Valid(buf), "%s", buf)
		var got jsonDetections
		require.NoError(t, json.Unmarshal(buf, &got))
		want := mirror(d, "gate")
		require.InDelta(t, want.Latency, got.Latency, 0.0005+1e-9)
		require.True(t, want.Time.Equal(got.Time))
		require.Len(t, got.Detections, len(want.Detections))
		for i := range want.Detections {
			w, g := &want.Detections[i], &got.Detections[i]
			require.InDelta(t, w.Score, g.Score, 0.0005+1e-9)
			w.Score, g.Score = 0, 0
			for k := range w.Box {
				require.InDelta(t, w.Box[k], g.Box[k], 0.0005+1e-9)
			}
			w.Box, g.Box = [4]float64{}, [4]float64{}
		}
		want.Latency, got.Latency, want.Time, got.Time = 0, 0, time.Time{}, time.Time{}
		require.Equal(t, *want, got)
	}
}

func TestDetectionsTakeThreeQuartersOfTheBytes(t *testing.T) {
	d := randomFrame(rand.New(rand.NewPCG(3, 4)), 10)
	standard, err := json.Marshal(mirror(d, "gate"))
	require.NoError(t, err)
	ours := d.AppendJSON(nil, "gate")
	assert.LessOrEqual(t, float64(len(ours)), 0.75*float64(len(standard)), "%d bytes against %d", len(ours), len(standard))
}

func TestDetectionsDoNotAllocate(t *testing.T) {
	d := randomFrame(rand.New(rand.NewPCG(3, 4)), 100)
	buf := d.AppendJSON(nil, "gate")
	assert.Zero(t, testing.AllocsPerRun(1000, func() { buf = d.AppendJSON(buf[:0], "gate") }))
}

func TestAppendDecimal(t *testing.T) {
	for _, c := range []struct {
		value float64
		want  string
	}{
		{0, "0"},
		{1, "1"},
		{-1.5, "-1.5"},
		{0.914, "0.914"},
		{0.9144, "0.914"},
		{0.9996, "1"},
		{12.05, "12.05"},
		{0.001, "0.001"},
		{-0.0004, "0"},
		{1e15, "1000000000000000"},
		{-2e18, "-2000000000000000000"},
		{math.NaN(), "0"},
		{math.Inf(1), "0"},
		{math.Inf(-1), "0"},
		{999999999999.999, "999999999999.999"},
	} {
		assert.Equal(t, c.want, string(AppendDecimal(nil, c.value)), "%v", c.value)
	}
}

func TestAppendTime(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for range 1000 {
		at := time.Unix(random.Int64N(250_000_000_000)-60_000_000_000, random.Int64N(1e9))
		assert.Equal(t, at.UTC().Format(`"2006-01-02T15:04:05.000000Z"`), string(appendTime(nil, at)))
	}
	assert.Equal(t, `"0000-01-01T00:00:00.000000Z"`, string(appendTime(nil, time.Date(20000, 1, 1, 0, 0, 0, 0, time.UTC))))
}

func FuzzAppendString(f *testing.F) {
	for _, seed := range []string{"", "person", "a\"b\\c", "\x00\x1f\x7f", "Bär", "\xff\xfe", "\u2028 \U0001F600", "\xe2\x82"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var got string
		require.NoError(t, json.Unmarshal(AppendString(nil, s), &got))
		standard, err := json.Marshal(s)
		require.NoError(t, err)
		var want string
		require.NoError(t, json.Unmarshal(standard, &want))
		require.Equal(t, want, got)
	})
}

// BenchmarkDetections/speedup prints how many times faster the append writer is than encoding/json in the same run.
func BenchmarkDetections(b *testing.B) {
	d := randomFrame(rand.New(rand.NewPCG(3, 4)), 10)
	m := mirror(d, "gate")
	buf := make([]byte, 0, 4096)
	b.Run("append", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			buf = d.AppendJSON(buf[:0], "gate")
		}
	})
	b.Run("encoding_json", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := json.Marshal(m); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("speedup", func(b *testing.B) {
		var ours, standard time.Duration
		for b.Loop() {
			start := time.Now()
			for range 100 {
				buf = d.AppendJSON(buf[:0], "gate")
			}
			middle := time.Now()
			for range 100 {
				json.Marshal(m)
			}
			ours += middle.Sub(start)
			standard += time.Since(middle)
		}
		b.ReportMetric(float64(standard)/float64(ours), "x")
		plain, err := json.Marshal(m)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(len(buf))/float64(len(plain)), "bytes-ratio")
	})
}

package live

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/web/live/livetest"
	"github.com/edge-infer/edge-infer/engine"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func opened() *Feed {
	f := &Feed{FrameRate: 12, ImageWidth: 960, Viewers: 16, Logger: slog.New(slog.DiscardHandler)}
	f.Open()
	return f
}

func TestViewersLeaveNothingBehind(t *testing.T) {
	f := opened()
	_, one, err := f.subscribe(true, nil)
	require.NoError(t, err)
	_, two, err := f.subscribe(false, []string{"cam0", "cam1"})
	require.NoError(t, err)
	require.Len(t, f.watched.Load().previews, 2)
	one()
	require.False(t, f.watched.Load().detections)
	two()
	require.Nil(t, f.watched.Load())
	require.Empty(t, f.previews)
	f.Stop()
	_, _, err = f.subscribe(true, nil)
	require.ErrorIs(t, err, errStopping)
}

func TestAFrameCostsNothingWhenNobodyLooks(t *testing.T) {
	f := opened()
	in := livetest.Result(livetest.Noise(engine.BGR, 1920, 1080, 3*1920), 1, 0)
	require.Zero(t, testing.AllocsPerRun(1000, func() { f.Frame(in) }))

	// With somebody it copies, into memory that it has.
	var copied frameCopy
	copied.copy(in)
	require.Zero(t, testing.AllocsPerRun(100, func() { copied.copy(in) }))
	_, leave, err := f.subscribe(true, nil)
	require.NoError(t, err)
	defer leave()
	for range 2 * frameQueue { // the recorder does not run: its queue fills
		f.Frame(in)
	}
	require.Zero(t, testing.AllocsPerRun(100, func() { f.Frame(in) }))
	require.NotZero(t, f.recorder.lost.Load())
	p := &preview{fresh: make(chan struct{}, 1)}
	p.take(in, time.Second)
	require.Zero(t, testing.AllocsPerRun(100, func() { in.Captured += int64(time.Second); p.take(in, time.Second) }))
}

// TestImagesComeAtTheRateThatIsSet, of a camera with 200 frames a second; many cameras share what all may have.
func TestImagesComeAtTheRateThatIsSet(t *testing.T) {
	const frames, seconds = 200, 10
	for _, test := range []struct{ rate, cameras, want int }{
		{1, 1, 1}, {12, 4, 12}, {30, 1, 30}, {30, 8, 6}, {maxImageRate, 1, maxImageRate},
	} {
		f := opened()
		f.FrameRate = test.rate
		var names []string
		for i := range test.cameras {
			names = append(names, fmt.Sprint("cam", i))
		}
		_, leave, err := f.subscribe(false, names)
		require.NoError(t, err)
		p := &preview{fresh: make(chan struct{}, 1)}
		taken := 0
		for i := range frames * seconds {
			in := livetest.Result(livetest.Noise(engine.GRAY8, 8, 8, 8), uint64(i+1), time.Duration(i+1)*time.Second/frames)
			if p.take(in, f.watched.Load().pause); p.seq == in.Seq {
				taken++
			}
		}
		require.InDelta(t, seconds*test.want, taken, 1, "%+v", test)
		leave()
		f.Stop()
	}
}

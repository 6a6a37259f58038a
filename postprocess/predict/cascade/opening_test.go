package cascade_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess/predict"
	"github.com/edge-infer/edge-infer/postprocess/predict/cascade"
)

// opener opens networks when the test says so.
type opener struct {
	asked   chan struct{}
	outcome chan predict.Predictor // nil for an error
}

func newOpener() *opener {
	return &opener{asked: make(chan struct{}, 100), outcome: make(chan predict.Predictor)}
}

func (o *opener) open(context.Context) (predict.Predictor, error) {
	o.asked <- struct{}{}
	if p := <-o.outcome; p != nil {
		return p, nil
	}
	return nil, errors.New("no such file")
}

// TestFramesGoOnWithoutANetworkThatIsOpenedLate: no frame waits for the opening, which is reported after ten seconds, fails, and is tried
// again with growing pauses; then objects have attributes.
func TestFramesGoOnWithoutANetworkThatIsOpenedLate(t *testing.T) {
	network := colours(t, 8) // its goroutines must not be in the bubble
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		o := newOpener()
		begun := time.Now()
		a := attend(t, slog.New(slog.NewTextHandler(&log, nil)), cascade.Stage{Name: "colour", Opener: o.open, Interval: time.Second})
		require.NoError(t, a.Await(t.Context(), 3*time.Second), "it is not known to have failed")
		require.Equal(t, 3*time.Second, time.Since(begun))
		f := newVideo("gate", 1)
		f.frame.Wait = false
		f.show(0, "red")
		for range 20 {
			at := time.Now()
			require.Empty(t, f.next(a, time.Second))
			require.Zero(t, time.Since(at), "the frame loop waits")
			require.Equal(t, "it is being opened", a.Stats()[0].Error)
			time.Sleep(time.Second)
		}
		require.Positive(t, a.Stats()[0].Missed)
		requireCount(t, 1, &log, "a secondary network is still being opened, attributes are missing")
		var pauses []time.Duration
		for range 4 {
			o.outcome <- nil
			<-o.asked
			failed := time.Now()
			synctest.Wait()
			require.Equal(t, "cascade colour: no such file", a.Stats()[0].Error)
			require.EqualError(t, a.Await(t.Context(), 0), "cascade colour: no such file", "the first outcome stays known")
			for len(o.asked) == 0 {
				time.Sleep(100 * time.Millisecond)
			}
			pauses = append(pauses, time.Since(failed))
		}
		require.Greater(t, pauses[3], 2*pauses[0], "%v", pauses)
		o.outcome <- network
		synctest.Wait()
		require.Empty(t, a.Stats()[0].Error)
		require.Eventually(t, func() bool { return len(f.next(a, time.Second)) == 1 }, 10*time.Second, time.Second)
		value, _ := known(a, "gate", 1)
		require.Equal(t, "red", value)
		requireCount(t, 0, &log, "too slow")
		require.NoError(t, a.Close())
		require.ErrorIs(t, network.Submit(0, []engine.Image{f.img}), engine.ErrClosed)
	})
}

// TestTheFirstOpeningFails: Await returns why, at once, also a setting that does not fit the network, which is closed.
func TestTheFirstOpeningFails(t *testing.T) {
	network := colours(t, 8)
	open := func(context.Context) (predict.Predictor, error) { return network, nil }
	a := attend(t, slog.New(slog.DiscardHandler), cascade.Stage{Name: "colour", Opener: open, KeepEmbedding: true})
	err := a.Await(t.Context(), 0)
	require.EqualError(t, err, "cascade colour: model colours.onnx has no embedding, it outputs the best classes of the image")
	require.ErrorAs(t, err, new(*cascade.SettingsError))
	require.ErrorIs(t, network.Submit(0, []engine.Image{black(64, 64)}), engine.ErrClosed)
	require.NoError(t, a.Close())
}

// TestANetworkThatHangsIsOpenedAgain: each time with a longer pause, in a network of its own; the abandoned ones are closed when they
// return, and the third one that hangs is left alone and reported.
func TestANetworkThatHangsIsOpenedAgain(t *testing.T) {
	var networks []*predict.Network
	for range 3 {
		networks = append(networks, colours(t, 8)) // their goroutines must not be in the bubble
	}
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		o := newOpener()
		goOn := make(chan struct{})
		hanging := func(i int) *gated { return &gated{Predictor: networks[i], begun: make(chan int, 10), goOn: goOn} }
		a := &cascade.Secondary{
			Stages: []cascade.Stage{{Name: "colour", Predictor: hanging(0), Opener: o.open, Interval: time.Second}},
			Labels: []string{"car", "person"},
			Logger: slog.New(slog.NewTextHandler(&log, nil)),
		}
		require.NoError(t, a.Open())
		f := newVideo("gate", 1)
		f.frame.Wait = false
		f.show(0, "red")
		frames := func(seconds int) {
			for range seconds {
				at := time.Now()
				f.next(a, time.Second)
				require.Zero(t, time.Since(at), "the frame loop waits")
				time.Sleep(time.Second)
			}
		}
		frames(9)
		require.False(t, a.Stats()[0].Hangs)
		for i := 1; i < 3; i++ {
			frames(20)
			require.True(t, a.Stats()[0].Hangs)
			require.EqualValues(t, i, a.Stats()[0].Failed)
			<-o.asked
			o.outcome <- hanging(i)
			synctest.Wait()
			require.Empty(t, a.Stats()[0].Error)
			require.NoError(t, a.Stuck())
		}
		frames(600)
		require.Empty(t, o.asked, "not opened a third time")
		require.EqualError(t, a.Stuck(), "cascade colour: 3 requests have not returned")
		require.True(t, a.Stats()[0].Stuck)
		require.Equal(t, "3 requests have not returned", a.Stats()[0].Error)
		requireCount(t, 1, &log, "secondary network is not opened again")
		requireCount(t, 3, &log, "secondary network hangs, attributes are not updated")
		close(goOn)
		synctest.Wait()
		for _, n := range networks[:2] {
			require.ErrorIs(t, n.Submit(0, []engine.Image{f.img}), engine.ErrClosed, "closed when it returned")
		}
		frames(3)
		value, _ := known(a, "gate", 1)
		require.Equal(t, "red", value, "the last one answers after all")
		require.NoError(t, a.Stuck())
		require.False(t, a.Stats()[0].Stuck)
		require.NoError(t, a.Close())
	})
}

// TestCloseWhileANetworkIsOpened: Close does not wait, and what is opened later is closed.
func TestCloseWhileANetworkIsOpened(t *testing.T) {
	network := colours(t, 8) // its goroutines must not be in the bubble
	synctest.Test(t, func(t *testing.T) {
		o := newOpener()
		a := attend(t, slog.New(slog.DiscardHandler), cascade.Stage{Name: "colour", Opener: o.open})
		require.NoError(t, a.Close())
		o.outcome <- network
		synctest.Wait()
		require.ErrorIs(t, network.Submit(0, []engine.Image{black(64, 64)}), engine.ErrClosed)
	})
}

// TestAVideoWaitsForTheOpening: its results must not depend on how long that takes, up to ten seconds.
func TestAVideoWaitsForTheOpening(t *testing.T) {
	network := colours(t, 8) // its goroutines must not be in the bubble
	synctest.Test(t, func(t *testing.T) {
		o := newOpener()
		a := attend(t, slog.New(slog.DiscardHandler), cascade.Stage{Name: "colour", Opener: o.open})
		f := newVideo("gate", 1)
		f.show(0, "red")
		time.AfterFunc(5*time.Second, func() { o.outcome <- network })
		begun := time.Now()
		require.Equal(t, []uint64{1}, f.next(a, 0))
		require.Equal(t, 5*time.Second, time.Since(begun))
		require.NoError(t, a.Close())

		never := attend(t, slog.New(slog.DiscardHandler), cascade.Stage{Name: "colour", Opener: o.open})
		begun = time.Now()
		require.Empty(t, f.next(never, time.Second))
		require.InDelta(t, 10, time.Since(begun).Seconds(), 1)
		require.NoError(t, never.Close())
		o.outcome <- nil
	})
}

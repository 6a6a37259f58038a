package report

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/terminal"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/zone"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAWriterThatHangsCostsLinesOnly(t *testing.T) {
	reader, writer := io.Pipe()
	lines := NewLines(writer, 4)
	for range 100 {
		lines.Add(false, func(line []byte) []byte { return append(line, "x\n"...) })
	}
	require.EqualValues(t, 96, lines.Dropped())
	read := make(chan string, 1)
	go func() {
		text, _ := io.ReadAll(reader)
		read <- string(text)
	}()
	lines.Add(true, func(line []byte) []byte { return append(line, "last\n"...) })
	require.NoError(t, lines.Close())
	require.NoError(t, writer.Close())
	require.Equal(t, "x\nx\nx\nx\nlast\n", <-read)
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("pipe closed") }

func TestAWriterThatFailsIsReported(t *testing.T) {
	lines := NewLines(broken{}, 2)
	lines.Add(true, func(line []byte) []byte { return append(line, '\n') })
	require.EqualError(t, lines.Close(), "pipe closed")
}

func frame(at time.Time, classes ...int) *pipeline.Result {
	in := &pipeline.Result{Camera: "gate", Seq: 7, Time: at, Labels: []string{"bolt", "nut"}}
	for _, class := range classes {
		in.Detections = append(in.Detections, postprocess.Detection{
			Box: postprocess.Box{X1: 1, Y1: 2.6, X2: 30, Y2: 40}, Score: 0.914, Class: class,
		})
	}
	return in
}

// Without a terminal, as under a service manager, frames print nothing: there are events, changes of state and a line a minute.
func TestWithoutATerminalEventsAndStatesAreLines(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6e6, time.Local)
	object := &zone.Object{Track: 7, Detection: postprocess.Detection{Class: 1}}
	drawn := &pipeline.Tracker{Config: zone.Config{Zones: []zone.Zone{{Name: "yard"}}}}
	with := func(of *pipeline.Tracker, events ...zone.Event) *pipeline.Result {
		in := frame(at, 0, 9)
		in.Tracker, in.Events = of, &zone.Result{Events: events}
		return in
	}
	var out bytes.Buffer
	shown := NewTerminal(terminal.Open(&out))
	for range 1000 {
		shown.Frame(frame(at, 0, 9))
		at = at.Add(time.Second)
	}
	at = time.Date(2026, 1, 2, 3, 4, 5, 6e6, time.Local)
	shown.Frame(with(drawn, zone.Event{Kind: zone.New, Object: object}, zone.Event{Kind: zone.Enter, Object: object},
		zone.Event{Kind: zone.Update, Object: object}, zone.Event{Kind: zone.Loiter, Object: object, Dwell: time.Minute}))
	shown.Frame(with(drawn, zone.Event{Kind: zone.Leave, Object: object, Dwell: 61200 * time.Millisecond},
		zone.Event{Kind: zone.End, Object: object}))
	shown.Frame(with(&pipeline.Tracker{}, zone.Event{Kind: zone.New, Object: object}))
	require.NoError(t, shown.Close())
	require.Equal(t, "03:04:05.006 gate zone yard: nut 7 enters\n03:04:05.006 gate zone yard: nut 7 stays for 1m0s\n"+
		"03:04:05.006 gate zone yard: nut 7 leaves after 1m1s\n03:04:05.006 gate new nut 7\n", out.String())

	synctest.Test(t, func(t *testing.T) {
		out.Reset()
		shown := NewTerminal(terminal.Open(&out))
		show := func(line string, state capture.State, reason string) {
			shown.Status(&State{Line: line, Cameras: []CameraState{{Capture: capture.Stats{Name: "gate", State: state, Reason: reason}}}})
			synctest.Wait()
		}
		begun := time.Now().Format("15:04:05.000 ")
		show("first", capture.Running, "")
		for range 5 {
			time.Sleep(10 * time.Second)
			show("more", capture.Running, "")
		}
		lost := time.Now().Format("15:04:05.000 ")
		show("more", capture.Lost, "no route")
		time.Sleep(10 * time.Second)
		show("second", capture.Lost, "no route")
		require.NoError(t, shown.Close())
		require.Equal(t, begun+"gate is running\nfirst\n"+lost+"gate is lost: no route\nsecond\n", out.String())
	})
}

func TestProgress(t *testing.T) {
	var out strings.Builder
	p := NewProgress(&out, "images")
	p.Count(1, 10)
	require.Empty(t, out.String(), "too soon to say anything")
	p.shown = p.shown.Add(-time.Minute)
	p.started = p.started.Add(-10 * time.Second)
	p.Count(5, 10)
	p.Close()
	require.Equal(t, "5 of 10 images, 0.5/s, 10s left\n", out.String())
}

// TestAReaderThatIsGoneIsNotWaitedFor: a line that must not be lost waits, until the output is hurried.
func TestAReaderThatIsGoneIsNotWaitedFor(t *testing.T) {
	reader, writer := io.Pipe()
	out := NewOutput(writer)
	lines := NewLines(out, 2)
	added := make(chan struct{})
	go func() {
		defer close(added)
		for range 10 {
			lines.Add(true, func(line []byte) []byte { return append(line, "x\n"...) })
		}
	}()
	first := make([]byte, 2)
	_, err := io.ReadFull(reader, first)
	require.NoError(t, err)
	select {
	case <-added:
		require.Fail(t, "nothing was waited for")
	case <-time.After(10 * time.Millisecond):
	}
	out.Hurry(time.Millisecond)
	<-added
	require.ErrorIs(t, lines.Close(), ErrUnread)
	_, err = out.Write([]byte("more"))
	require.ErrorIs(t, err, ErrUnread)
	require.NoError(t, out.Close())
	_ = reader.Close() // what hangs ends
}

// TestAHurriedReaderHasItsTime: what a run has to say at its end comes when the end is reached, however long that takes.
func TestAHurriedReaderHasItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reader, writer := io.Pipe()
		out := NewOutput(writer)
		out.Hurry(2 * time.Second)
		time.Sleep(time.Minute) // of ending
		slowly := func(lines int) {
			for range lines {
				time.Sleep(1500 * time.Millisecond)
				if _, err := reader.Read(make([]byte, 8)); err != nil {
					return
				}
			}
		}
		go slowly(3)
		for range 3 {
			_, err := out.Write([]byte("line\n"))
			require.NoError(t, err)
		}
		begun := time.Now()
		_, err := out.Write([]byte("line\n"))
		require.ErrorIs(t, err, ErrUnread)
		require.Equal(t, 2*time.Second, time.Since(begun))
		_, err = out.Write([]byte("line\n"))
		require.ErrorIs(t, err, ErrUnread)
		require.Equal(t, 2*time.Second, time.Since(begun))
		_ = reader.Close()
		require.NoError(t, out.Close())

		reader, writer = io.Pipe()
		out = NewOutput(writer)
		out.Hurry(2 * time.Second)
		begun = time.Now()
		go slowly(100)
		for err = nil; err == nil; {
			_, err = out.Write([]byte("line\n"))
		}
		require.ErrorIs(t, err, ErrUnread)
		require.Equal(t, 20*time.Second, time.Since(begun), "the slowest reader")
		_ = reader.Close()
		require.NoError(t, out.Close())
		time.Sleep(time.Minute) // until the reader has ended
	})
}

func TestAnOutputThatIsReadInTimeLosesNothing(t *testing.T) {
	var text bytes.Buffer
	out := NewOutput(&text)
	for range 3 {
		_, err := out.Write([]byte("line\n"))
		require.NoError(t, err)
	}
	require.NoError(t, out.Close())
	require.Equal(t, "line\nline\nline\n", text.String())
}

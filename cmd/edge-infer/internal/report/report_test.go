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

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/terminal"
	"github.com/edge-infer/edge-infer/postprocess"
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

func TestWithoutATerminalFramesAreLines(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6e6, time.Local)
	var out bytes.Buffer
	shown := NewTerminal(terminal.Open(&out))
	shown.Frame(frame(at, 0, 9))
	shown.Frame(frame(at.Add(time.Millisecond), 1)) // too soon for a person
	shown.Frame(frame(at.Add(time.Second)))         // shows nothing
	require.NoError(t, shown.Close())
	require.Equal(t, "03:04:05.006 gate #7  bolt 0.91 [1,3 30,40], class 9 0.91 [1,3 30,40]\n", out.String())

	out.Reset()
	shown = NewTerminal(terminal.Open(&out))
	shown.Status(&State{Line: "all well"})
	require.NoError(t, shown.Close())
	require.Equal(t, "all well\n", out.String())
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

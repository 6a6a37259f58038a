package report

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/terminal"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/zone"
)

func text(rows []terminal.Row) string {
	var all strings.Builder
	for _, row := range rows {
		all.WriteString(strings.TrimRight(string(row.Append(nil, false)), " ") + "\n")
	}
	return all.String()
}

// running is a state with two cameras, one of which is away.
func running() *State {
	s := &State{
		Title: "pi: model on cpu", Elapsed: 72*time.Second + time.Millisecond, Broker: "connected", Connected: true,
		Messages: &Messages{Delivered: 519}, Page: "http://127.0.0.1:8080/",
	}
	s.Cameras = []CameraState{
		{
			pipeline.CameraStats{
				Camera: "belt", FPS: 29.84, P50: 16100 * time.Microsecond, P99: 101200 * time.Microsecond, Inferred: 800, DroppedError: 1,
			},
			capture.Stats{State: capture.Running, Dropped: 35, Damaged: 2, Width: 1280, Height: 720},
		},
		{pipeline.CameraStats{Camera: "gate"}, capture.Stats{State: capture.Waiting, Reason: "connection refused"}},
	}
	return s
}

func shown() *Terminal {
	t := &Terminal{frames: map[string]*frameSummary{}}
	t.frames["belt"] = &frameSummary{
		labels: []string{"bolt", "nut"}, counts: []int{1, 3, 1},
		counters: []counter{{name: "exit", line: true, in: 12, out: 3}, {name: "dock", present: 2}},
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.Local)
	for i, kind := range []zone.Kind{zone.Enter, zone.Loiter, zone.Leave, zone.Cross, zone.New} {
		t.recent = append(t.recent, eventRow{
			time: at.Add(time.Duration(i) * time.Second), camera: "belt", kind: kind, label: "nut", track: 7, counter: "dock", direction: "in",
		})
	}
	return t
}

func TestTheBlockOfARun(t *testing.T) {
	require.Equal(t, `
pi: model on cpu  up 1m12s
camera  state          fps  p50 ms  p99 ms  errors  objects
gate    waiting     connection refused
belt    running       29.8    16.1   101.2       3  3 nut, 1 bolt, 1 class 2
        exit: 12 in, 3 out; dock: 2 inside
03:04:05 belt  nut 7 enters dock
03:04:06 belt  nut 7 loiters in dock
03:04:07 belt  nut 7 leaves dock
03:04:08 belt  nut 7 crosses dock in
03:04:09 belt  nut 7 appears
mqtt connected, 519 delivered, 0 waiting  page http://127.0.0.1:8080/
`, text(shown().compose(running(), 80, 24)))
	wide := text(shown().compose(running(), 200, 24))
	require.Contains(t, wide, "errors  dropped  frames  detections   image  objects")
	require.Contains(t, wide, "   3       35     800           0  1280x720  3 nut")
}

func TestTheBlockTellsWhatIsNotAsAskedFor(t *testing.T) {
	s := running()
	s.Notes = []string{"cooling down: 2 times the interval"}
	s.Broker, s.Connected, s.Messages.Dropped = "away: refused", false, 4
	s.Cameras[1].Capture.NextTry = time.Now().Add(time.Hour)
	block := text(shown().compose(s, 80, 24))
	require.Contains(t, block, "\ncooling down: 2 times the interval\n")
	require.Contains(t, block, "mqtt away: refused, 519 delivered, 0 waiting, 4 dropped")
	require.Regexp(t, `gate    waiting     retry in (1h0m0s|59m59s): connection refused`, block)
}

// A low terminal loses events first, then cameras that are well.
func TestALowTerminal(t *testing.T) {
	block := text(shown().compose(running(), 80, 9))
	require.Equal(t, 8, strings.Count(block, "\n"), block)
	require.Contains(t, block, "nut 7 appears")
	require.NotContains(t, block, "crosses")

	s := running()
	for i := range 20 {
		s.Cameras = append(s.Cameras, CameraState{
			pipeline.CameraStats{Camera: fmt.Sprint("cam", i)}, capture.Stats{State: capture.Running},
		})
	}
	block = text(shown().compose(s, 80, 24))
	require.LessOrEqual(t, strings.Count(block, "\n"), 23, block)
	require.Contains(t, block, "and 5 more cameras")
	require.NotContains(t, block, "appears")
	require.Contains(t, block, "gate    waiting")
}

func TestNamesAreCutToTheirColumn(t *testing.T) {
	require.Equal(t, "gate  ", fitted("gate", 6))
	require.Equal(t, "courty…", fitted("courtyard", 7))
	require.Equal(t, "日本 …", fitted("日本語の", 6))
}

// TestFramesReachTheBlock: what the frame loop gives is what the next block shows.
func TestFramesReachTheBlock(t *testing.T) {
	shown := &Terminal{frames: map[string]*frameSummary{}, recent: make([]eventRow, 0, maxRecent)}
	in := frame(time.Now(), 0, 1, 1)
	in.Tracker = &pipeline.Tracker{Config: zone.Config{Lines: []zone.Line{{Name: "exit"}}}}
	in.Events = &zone.Result{Events: []zone.Event{
		{Kind: zone.New, Object: &zone.Object{Track: 3, Detection: postprocess.Detection{Class: 1}}},
		{Kind: zone.Cross, Line: 0, Direction: "in", Object: &zone.Object{Track: 3, Detection: postprocess.Detection{Class: 1}}},
		{Kind: zone.Update, Object: &zone.Object{Track: 3, Detection: postprocess.Detection{Class: 1}}},
	}}
	for range 2 * maxRecent {
		shown.note(in)
	}
	require.Len(t, shown.recent, maxRecent)
	s := running()
	s.Cameras[0].Camera = "gate"
	block := text(shown.compose(s, 80, 24))
	require.Contains(t, block, "2 nut, 1 bolt")
	require.Contains(t, block, "nut 3 crosses exit in")
	require.NotContains(t, block, "appears", "a camera with lines and zones tells of those")
	require.Contains(t, block, "exit: 0 in, 0 out")
}

func TestLogLines(t *testing.T) {
	var level slog.LevelVar
	write := func(form string, colour bool) string {
		var out bytes.Buffer
		logger := NewChangingLogger(&out, &level, form)
		if colour {
			logger = slog.New(newTextHandler(&out, &level, true))
		}
		logger.Debug("not wanted")
		logger.With("camera", "gate").Warn("camera lost", "error", errors.New("it said \x1b[2J"))
		logger.Info("plain")
		return out.String()
	}
	require.Regexp(t,
		`^\d\d:\d\d:\d\d WARN camera lost camera=gate error="it said \\x1b\[2J"\n\d\d:\d\d:\d\d INFO plain\n$`,
		write(TextLog, false))
	require.Contains(t, write(TextLog, true), "\x1b[33mWARN\x1b[0m camera lost camera=gate error=\"it said \\x1b[2J\"\n")
	require.Regexp(t, `^time=\S+ level=WARN msg="camera lost" camera=gate error="it said \\x1b\[2J"\ntime=`, write(LogfmtLog, false))
	require.Regexp(t, `^time=`, write(AutomaticLog, false), "no terminal")
	require.Regexp(t,
		`^\{"time":"[^"]+","level":"WARN","msg":"camera lost","camera":"gate","error":"it said \\u001b\[2J"\}\n\{`, write(JSONLog, false))
}

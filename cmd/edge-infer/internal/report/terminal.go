package report

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/terminal"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/zone"
)

// summaryPause is the minimum time between two lines with the state of the run without a terminal.
const summaryPause = time.Minute

// Terminal shows a run: one block that is updated in place or, if the output is not a terminal, a line for each event, for each change of a
// camera's state and once a minute for the whole run.
type Terminal struct {
	screen *terminal.Screen
	lines  *Lines

	mutex  sync.Mutex
	frames map[string]*frameSummary // by camera
	recent []eventRow               // newest last
	states chan *State              // the newest state to be drawn
	done   chan struct{}
}

// maxRecent is the number of events kept for the block.
const maxRecent = 16

// NewTerminal returns a Terminal that writes to the screen until Close.
func NewTerminal(screen *terminal.Screen) *Terminal {
	t := &Terminal{
		screen: screen, lines: NewLines(screen, 64), frames: map[string]*frameSummary{},
		recent: make([]eventRow, 0, maxRecent), states: make(chan *State, 1), done: make(chan struct{}),
	}
	go t.draw()
	return t
}

// Frame implements pipeline.Sink.
func (t *Terminal) Frame(in *pipeline.Result) {
	if t.screen.Live() {
		t.note(in)
		return
	}
	t.events(in)
}

// note updates the block's data from a frame. It does not allocate once a camera is known.
func (t *Terminal) note(in *pipeline.Result) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	b := t.frames[in.Camera]
	if b == nil {
		b = &frameSummary{}
		t.frames[in.Camera] = b
	}
	b.update(in)
	if in.Events == nil {
		return
	}
	for i := range in.Events.Events {
		e := &in.Events.Events[i]
		place := ""
		switch e.Kind {
		case zone.Cross:
			place = in.Tracker.Config.Lines[e.Line].Name
		case zone.Enter, zone.Leave, zone.Loiter:
			place = in.Tracker.Config.Zones[e.Zone].Name
		case zone.New:
			if len(b.counters) > 0 { // only events of zones and lines matter
				continue
			}
		default:
			continue
		}
		if len(t.recent) == maxRecent {
			t.recent = slices.Delete(t.recent, 0, 1)
		}
		t.recent = append(t.recent, eventRow{
			time: in.Time, camera: in.Camera, kind: e.Kind, label: postprocess.Label(in.Labels, e.Object.Class), track: e.Object.Track,
			counter: place, direction: e.Direction,
		})
	}
}

// events prints the events of zones and lines, with a line's counts of the label, or where there are none the new objects.
func (t *Terminal) events(in *pipeline.Result) {
	if in.Events == nil {
		return
	}
	for i := range in.Events.Events {
		e := &in.Events.Events[i]
		text := eventText(in, e)
		if text == "" {
			continue
		}
		t.lines.Add(false, func(line []byte) []byte {
			line = in.Time.AppendFormat(line, "15:04:05.000 ")
			line = append(line, in.Camera...)
			line = append(line, ' ')
			return append(append(line, text...), '\n')
		})
	}
}

// classCount returns the count of a class, 0 for a class number too high to be counted.
func classCount(counts []int, class int) int {
	if class < len(counts) {
		return counts[class]
	}
	return 0
}

// eventText returns an event for a line of output, empty for one that is not shown.
func eventText(in *pipeline.Result, e *zone.Event) string {
	configuration := &in.Tracker.Config
	object := fmt.Sprintf("%s %d", postprocess.Label(in.Labels, e.Object.Class), e.Object.Track)
	switch e.Kind {
	case zone.Cross:
		count := in.Tracker.LineCount(e.Line)
		return fmt.Sprintf("line %s: %s crosses %s, now %d in %d out", configuration.Lines[e.Line].Name, object, e.Direction,
			classCount(count.In, e.Object.Class), classCount(count.Out, e.Object.Class))
	case zone.Enter:
		return fmt.Sprintf("zone %s: %s enters", configuration.Zones[e.Zone].Name, object)
	case zone.Leave:
		return fmt.Sprintf("zone %s: %s leaves after %v", configuration.Zones[e.Zone].Name, object, e.Dwell.Round(time.Second))
	case zone.Loiter:
		return fmt.Sprintf("zone %s: %s stays for %v", configuration.Zones[e.Zone].Name, object, e.Dwell.Round(time.Second))
	case zone.New:
		if len(configuration.Zones)+len(configuration.Lines) == 0 {
			return "new " + object
		}
	}
	return ""
}

// AppendSummary appends detections in their order, as "bolt 0.97 [412,88 655,690], nut 0.91 [...]".
func AppendSummary(line []byte, detections []postprocess.Detection, labels []string) []byte {
	if len(detections) == 0 {
		return append(line, "nothing"...)
	}
	for i := range detections {
		d := &detections[i]
		if i > 0 {
			line = append(line, ", "...)
		}
		line = append(line, postprocess.Label(labels, d.Class)...)
		line = append(line, ' ')
		line = strconv.AppendFloat(line, float64(d.Score), 'f', 2, 32)
		line = append(line, " ["...)
		for j, v := range [...]float32{d.X1, d.Y1, d.X2, d.Y2} {
			if j > 0 {
				line = append(line, ", "[(j+1)%2])
			}
			line = strconv.AppendInt(line, int64(v+0.5), 10)
		}
		line = append(line, ']')
	}
	return line
}

// Live reports whether there is a block, which needs a Status every second.
func (t *Terminal) Live() bool { return t.screen.Live() }

// Status shows the state in the block or, at most once a minute, as one line. It does not block.
func (t *Terminal) Status(state *State) {
	select {
	case <-t.states: // replaced by the newer state
	default:
	}
	t.states <- state
}

// draw prints states in its own goroutine, so that a stopped terminal (Ctrl-S) blocks nothing else.
func (t *Terminal) draw() {
	defer close(t.done)
	var shown time.Time
	known := map[string]capture.State{}
	for state := range t.states {
		if !t.screen.Live() {
			t.screen.Show(changes(state.Cameras, known)...)
			if now := time.Now(); shown.IsZero() || now.Sub(shown) >= summaryPause {
				t.screen.Show(terminal.Text(state.Line))
				shown = now
			}
			continue
		}
		columns, rows := t.screen.Size()
		t.mutex.Lock()
		block := t.compose(state, columns, rows)
		t.mutex.Unlock()
		t.screen.Show(block...)
	}
}

// changes returns a row for each camera whose state differs from the known one, and updates those.
func changes(cameras []CameraState, known map[string]capture.State) (rows []terminal.Row) {
	for i := range cameras {
		camera := &cameras[i].Capture
		if before, found := known[camera.Name]; found && before == camera.State {
			continue
		}
		known[camera.Name] = camera.State
		text := fmt.Sprintf("%s %s is %s", time.Now().Format("15:04:05.000"), camera.Name, camera.State)
		if camera.Reason != "" && camera.State != capture.Running {
			text += ": " + camera.Reason
		}
		rows = append(rows, terminal.Text(text))
	}
	return rows
}

// Close writes the queued lines and removes the block. Neither Frame nor Status may be called afterwards.
func (t *Terminal) Close() error {
	close(t.states)
	<-t.done
	err := t.lines.Close()
	t.screen.Clear()
	return err
}

package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/terminal"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/zone"
)

// State is the state of a run as shown on the terminal.
type State struct {
	Line    string // the whole state in one line, for output that is not a terminal
	Title   string // model, backend and device
	Elapsed time.Duration
	Cameras []CameraState
	Notes   []string // warnings
	Broker  string   // state of the connection
	// Connected is set if the broker is connected or MQTT is off.
	Connected bool
	Messages  *Messages // nil without MQTT
	Page      string    // address of the web page, empty without one
}

// CameraState is the state of one camera.
type CameraState struct {
	pipeline.CameraStats // FPS and latencies of the last interval
	Capture              capture.Stats
}

// frameSummary summarises the last frame of a camera.
type frameSummary struct {
	labels   []string
	counts   []int // objects by class
	counters []counter
}

// counter is a line or a zone and its counts.
type counter struct {
	name             string
	line             bool
	in, out, present int
}

// eventRow is an event as a row of the block.
type eventRow struct {
	time      time.Time
	camera    string
	kind      zone.Kind
	label     string
	track     uint64
	counter   string
	direction zone.Direction
}

// update replaces the summary with that of a new frame.
func (b *frameSummary) update(in *pipeline.Result) {
	b.labels = in.Labels
	clear(b.counts)
	for i := range in.Detections {
		class := in.Detections[i].Class
		for len(b.counts) <= class {
			b.counts = append(b.counts, 0)
		}
		b.counts[class]++
	}
	b.counters = b.counters[:0]
	if in.Tracker == nil {
		return
	}
	for i := range in.Tracker.Config.Lines {
		count := in.Tracker.LineCount(i)
		b.counters = append(b.counters, counter{name: in.Tracker.Config.Lines[i].Name, line: true, in: sum(count.In), out: sum(count.Out)})
	}
	for i := range in.Tracker.Config.Zones {
		count := in.Tracker.ZoneCount(i)
		b.counters = append(b.counters, counter{name: in.Tracker.Config.Zones[i].Name, present: sum(count.Occupied)})
	}
}

func sum(counts []int) (all int) {
	for _, n := range counts {
		all += n
	}
	return all
}

// objects returns the object counts by label, largest first.
func (b *frameSummary) objects() string {
	if b == nil {
		return ""
	}
	classes := make([]int, 0, len(b.counts))
	for class, n := range b.counts {
		if n > 0 {
			classes = append(classes, class)
		}
	}
	slices.SortStableFunc(classes, func(i, j int) int { return cmp.Compare(b.counts[j], b.counts[i]) })
	var text strings.Builder
	for i, class := range classes {
		if i > 0 {
			text.WriteString(", ")
		}
		fmt.Fprintf(&text, "%d %s", b.counts[class], postprocess.Label(b.labels, class))
	}
	return cmp.Or(text.String(), "nothing")
}

// counterText returns the counts of lines and zones; empty without any.
func (b *frameSummary) counterText() string {
	if b == nil {
		return ""
	}
	var all []string
	for _, p := range b.counters {
		if p.line {
			all = append(all, fmt.Sprintf("%s: %d in, %d out", p.name, p.in, p.out))
		} else {
			all = append(all, fmt.Sprintf("%s: %d inside", p.name, p.present))
		}
	}
	return strings.Join(all, "; ")
}

// compose returns the block for a terminal of this size: title, a row for each camera and its counts, the last events, the broker. If it
// does not fit, events are omitted first, then running cameras.
func (t *Terminal) compose(s *State, columns, rows int) []terminal.Row {
	up := terminal.Span{Text: "  up " + s.Elapsed.Round(time.Second).String(), Style: terminal.Faint}
	head := []terminal.Row{nil, {{Text: s.Title, Style: terminal.Title}, up}}
	for _, note := range s.Notes {
		head = append(head, terminal.Row{{Text: note, Style: terminal.Alert}})
	}
	table := newCameraTable(s.Cameras, columns)
	head = append(head, table.heading())
	foot := []terminal.Row{t.mqtt(s)}
	room := max(rows-1-len(head)-len(foot), 1)

	var cameras []terminal.Row
	for i, c := range table.cameras {
		b := t.frames[c.Camera]
		camera := []terminal.Row{table.row(c, b)}
		if counted := b.counterText(); counted != "" && c.Capture.State == capture.Running {
			camera = append(camera, terminal.Row{{Text: strings.Repeat(" ", table.nameWidth+2) + counted, Style: terminal.Faint}})
		}
		last := i == len(table.cameras)-1
		if len(cameras)+len(camera) > room || !last && len(cameras)+len(camera) == room {
			cameras = append(cameras, terminal.Row{{Text: fmt.Sprintf("and %d more cameras", len(table.cameras)-i), Style: terminal.Faint}})
			break
		}
		cameras = append(cameras, camera...)
	}
	block := append(head, cameras...)
	most := min(len(t.recent), room-len(cameras), 5)
	if most > 0 {
		for _, e := range t.recent[len(t.recent)-most:] {
			block = append(block, e.row())
		}
	}
	return append(block, foot...)
}

// row returns the time, camera and text of the event.
func (e *eventRow) row() terminal.Row {
	text := fmt.Sprintf("%s %d ", e.label, e.track)
	switch e.kind {
	case zone.Cross:
		text += fmt.Sprintf("crosses %s %s", e.counter, e.direction)
	case zone.Enter:
		text += "enters " + e.counter
	case zone.Leave:
		text += "leaves " + e.counter
	case zone.Loiter:
		text += "loiters in " + e.counter
	default:
		text += "appears"
	}
	return terminal.Row{{Text: e.time.Format("15:04:05") + " " + e.camera + "  ", Style: terminal.Faint}, {Text: text}}
}

// mqtt returns the row with the state of the broker and the address of the page.
func (t *Terminal) mqtt(s *State) terminal.Row {
	style := terminal.Good
	if !s.Connected {
		style = terminal.Alert
	}
	row := terminal.Row{{Text: "mqtt "}, {Text: s.Broker, Style: style}}
	if m := s.Messages; m != nil {
		row = append(row, terminal.Span{Text: fmt.Sprintf(", %d delivered, %d waiting", m.Delivered, m.Waiting)})
		if m.Dropped > 0 {
			row = append(row, terminal.Span{Text: fmt.Sprintf(", %d dropped", m.Dropped), Style: terminal.Alert})
		}
	}
	if s.Page != "" {
		row = append(row, terminal.Span{Text: "  page " + s.Page, Style: terminal.Faint})
	}
	return row
}

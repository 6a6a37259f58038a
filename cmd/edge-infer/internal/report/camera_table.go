package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/terminal"
)

// cameraTable formats the rows of cameras.
type cameraTable struct {
	cameras   []CameraState // failing ones first
	nameWidth int           // columns of the longest name
	columns   []column
}

// column is a column of numbers.
type column struct {
	title    string
	wideOnly bool // shown on wide terminals only
	value    func(*CameraState) string
}

// wideTerminal is the terminal width from which all columns are shown.
const wideTerminal = 120

var allColumns = []column{
	{"fps", false, func(c *CameraState) string { return fmt.Sprintf("%.1f", c.FPS) }},
	{"p50 ms", false, func(c *CameraState) string { return fmt.Sprintf("%.1f", inMilliseconds(c.P50)) }},
	{"p99 ms", false, func(c *CameraState) string { return fmt.Sprintf("%.1f", inMilliseconds(c.P99)) }},
	{"errors", false, func(c *CameraState) string { return fmt.Sprint(c.DroppedError + c.Capture.Damaged) }},
	{"dropped", true, func(c *CameraState) string { return fmt.Sprint(c.Capture.Dropped) }},
	{"frames", true, func(c *CameraState) string { return fmt.Sprint(c.Inferred) }},
	{"detections", true, func(c *CameraState) string { return fmt.Sprint(c.Detections) }},
	{"image", true, func(c *CameraState) string { return fmt.Sprintf("%dx%d", c.Capture.Width, c.Capture.Height) }},
}

func inMilliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

const stateColumns = len("connecting")

func newCameraTable(cameras []CameraState, terminalWidth int) *cameraTable {
	t := &cameraTable{cameras: slices.Clone(cameras), nameWidth: len("camera")}
	slices.SortStableFunc(t.cameras, func(a, b CameraState) int {
		return cmp.Compare(stateOrder(a.Capture.State), stateOrder(b.Capture.State))
	})
	for i := range cameras {
		t.nameWidth = max(t.nameWidth, min(terminal.Width(cameras[i].Camera), terminalWidth/5))
	}
	for _, f := range allColumns {
		if !f.wideOnly || terminalWidth >= wideTerminal {
			t.columns = append(t.columns, f)
		}
	}
	return t
}

// stateOrder sorts failing states before running ones.
func stateOrder(state capture.State) int {
	if state == capture.Running || state == capture.Ended {
		return 1
	}
	return 0
}

// wide is the width of a figure in columns.
func (f *column) width() int { return max(len(f.title), 6) }

func (t *cameraTable) heading() terminal.Row {
	var text strings.Builder
	fmt.Fprintf(&text, "%-*s  %-*s", t.nameWidth, "camera", stateColumns, "state")
	for i := range t.columns {
		fmt.Fprintf(&text, "  %*s", t.columns[i].width(), t.columns[i].title)
	}
	text.WriteString("  objects")
	return terminal.Row{{Text: text.String(), Style: terminal.Faint}}
}

func (t *cameraTable) row(c CameraState, b *frameSummary) terminal.Row {
	state := terminal.Span{Text: fmt.Sprintf("  %-*s", stateColumns, c.Capture.State)}
	switch c.Capture.State {
	case capture.Running:
		state.Style = terminal.Good
	case capture.Failed, capture.Hung:
		state.Style = terminal.Bad
	case capture.Ended:
	default:
		state.Style = terminal.Alert
	}
	row := terminal.Row{{Text: fitted(c.Camera, t.nameWidth)}, state}
	if stateOrder(c.Capture.State) == 0 {
		why := c.Capture.Reason
		if left := time.Until(c.Capture.NextTry).Round(time.Second); left > 0 {
			why = fmt.Sprintf("retry in %v: %s", left, why)
		}
		return append(row, terminal.Span{Text: "  " + why, Style: state.Style})
	}
	var numbers strings.Builder
	for i := range t.columns {
		fmt.Fprintf(&numbers, "  %*s", t.columns[i].width(), t.columns[i].value(&c))
	}
	return append(row, terminal.Span{Text: numbers.String()}, terminal.Span{Text: "  " + b.objects()})
}

// fitted pads or cuts a text to exactly this number of columns.
func fitted(text string, columns int) string {
	width := terminal.Width(text)
	if width <= columns {
		return text + strings.Repeat(" ", columns-width)
	}
	kept := ""
	for _, c := range text {
		if terminal.Width(kept)+terminal.Width(string(c)) > columns-1 {
			break
		}
		kept += string(c)
	}
	return kept + strings.Repeat(" ", columns-1-terminal.Width(kept)) + "…"
}

package report

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/zone"
)

// linePause is the shortest time between two detection lines of a camera on a terminal: what a person can follow.
const linePause = 250 * time.Millisecond

// Terminal shows detections as lines and the state of the run as one line below them that is written again and again. Where the output is
// no terminal the state becomes an ordinary line.
type Terminal struct {
	screen *screen
	lines  *Lines
	last   map[string]time.Time // of the newest line by camera; frame goroutine only
}

// NewTerminal writes to out; live says that it is a terminal of that many columns.
func NewTerminal(out io.Writer, live bool, columns int) *Terminal {
	s := &screen{out: out, live: live, columns: columns}
	return &Terminal{screen: s, lines: NewLines(s, 64), last: map[string]time.Time{}}
}

// Frame shows what a frame holds, some frames a second, and every crossing of a line.
func (t *Terminal) Frame(in *pipeline.Inferred) {
	t.crossings(in)
	if in.Time.Sub(t.last[in.Camera]) < linePause || len(in.Detections) == 0 {
		return
	}
	t.last[in.Camera] = in.Time
	t.lines.Add(false, func(line []byte) []byte {
		line = in.Time.AppendFormat(line, "15:04:05.000 ")
		line = append(line, in.Camera...)
		line = append(line, " #"...)
		line = strconv.AppendUint(line, in.Seq, 10)
		line = append(line, "  "...)
		return append(AppendSummary(line, in.Detections, in.Labels), '\n')
	})
}

// crossings shows who crossed which line, with the line's count of that label.
func (t *Terminal) crossings(in *pipeline.Inferred) {
	if in.Happened == nil {
		return
	}
	for i := range in.Happened.Events {
		e := &in.Happened.Events[i]
		if e.Kind != zone.Cross {
			continue
		}
		count := in.Follower.LineCount(e.Line)
		t.lines.Add(false, func(line []byte) []byte {
			line = in.Time.AppendFormat(line, "15:04:05.000 ")
			return fmt.Appendf(line, "%s line %s: %s %d crosses %s, now %d in %d out\n", in.Camera, in.Follower.Config.Lines[e.Line].Name,
				postprocess.Label(in.Labels, e.Object.Class), e.Object.Track, e.Direction, count.In[e.Object.Class], count.Out[e.Object.Class])
		})
	}
}

// AppendSummary appends "bolt 0.97 [412,88 655,690], nut 0.91 [...]", best first as they come.
func AppendSummary(line []byte, findings []postprocess.Finding, labels []string) []byte {
	if len(findings) == 0 {
		return append(line, "nothing"...)
	}
	for i := range findings {
		d := &findings[i]
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

// Live reports whether the status line is written again and again.
func (t *Terminal) Live() bool { return t.screen.live }

// Status replaces the line below the detections.
func (t *Terminal) Status(status string) { t.screen.status(status) }

// Close writes what waits and leaves the cursor on a new line.
func (t *Terminal) Close() error {
	err := t.lines.Close()
	t.screen.end()
	return err
}

// screen keeps one status line below what else is written.
type screen struct {
	mutex   sync.Mutex
	out     io.Writer
	live    bool
	columns int
	shown   string
}

const eraseLine = "\r\x1b[K"

// Write puts whole lines above the status line.
func (s *screen) Write(lines []byte) (int, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if !s.live || s.shown == "" {
		return s.out.Write(lines)
	}
	if s.columns > 4 && len(lines) > s.columns {
		lines = append(append([]byte(nil), lines[:s.columns-4]...), "...\n"...)
	}
	_, err := fmt.Fprintf(s.out, "%s%s%s", eraseLine, lines, s.shown)
	return len(lines), err
}

func (s *screen) status(text string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if !s.live {
		fmt.Fprintln(s.out, text)
		return
	}
	text = strings.ReplaceAll(text, "\n", " ")
	if s.columns > 0 && len(text) >= s.columns {
		text = text[:s.columns-1]
	}
	s.shown = text
	fmt.Fprint(s.out, eraseLine, text)
}

func (s *screen) end() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.live && s.shown != "" {
		fmt.Fprintln(s.out)
		s.shown = ""
	}
}

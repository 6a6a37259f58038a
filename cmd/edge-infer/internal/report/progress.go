package report

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/progress"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/terminal"
)

// Progress shows the progress of long work: one line that is updated on a terminal, a line every ten seconds elsewhere.
type Progress struct {
	mutex   sync.Mutex
	screen  *terminal.Screen
	unit    string
	started time.Time
	shown   time.Time
}

var _ progress.Step = (*Progress)(nil)

// NewProgress returns a Progress that counts units, such as images, on out.
func NewProgress(out io.Writer, what string) *Progress {
	now := time.Now()
	return &Progress{screen: terminal.Open(out), unit: what, started: now, shown: now}
}

// Steps returns a reporter that shows every step on out.
func Steps(out io.Writer) progress.Reporter {
	return func(name string) progress.Step { return NewProgress(out, name) }
}

// Count reports that done of total units are complete. It is safe for concurrent use.
func (p *Progress) Count(done, total int) {
	p.show(func() string {
		text := fmt.Sprintf("%d of %d %s", done, total, p.unit)
		if done > 0 && done < total {
			elapsed := time.Since(p.started)
			left := time.Duration(float64(elapsed) / float64(done) * float64(total-done))
			text += fmt.Sprintf(", %.3g/s, %v left", float64(done)/elapsed.Seconds(), left.Round(time.Second))
		}
		return text
	})
}

// Note shows a text. It is safe for concurrent use.
func (p *Progress) Note(text string) { p.show(func() string { return text }) }

// show writes text() unless the last update was too recent.
func (p *Progress) show(text func() string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	pause := 10 * time.Second
	if p.screen.Live() {
		pause = 100 * time.Millisecond
	}
	now := time.Now()
	if now.Sub(p.shown) < pause {
		return
	}
	p.shown = now
	p.screen.Show(terminal.Text(text()))
}

// Close keeps the last line.
func (p *Progress) Close() { p.screen.Keep() }

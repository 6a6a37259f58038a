package catalogue

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/edge-infer/edge-infer/internal/atomicfile"
)

// Offer asks a person at a terminal whether to download a model, once: the answer is kept in the store.
type Offer struct {
	Model Entry
	In    io.Reader // the terminal
	Out   io.Writer
	Pull  Pull // Run sets the model
}

// Answers to the offer of a model, which is made once.
const (
	accepted = "yes"
	declined = "no"
)

// answerPath returns the file with the answer to the offer of a model.
func (s Store) answerPath(name string) string { return filepath.Join(s.Dir, ".offer-"+name) }

// answer returns the kept answer to the offer of a model; "" if nobody has been asked. A model that was accepted and removed since is
// offered again.
func (s Store) answer(e *Entry) string {
	text, _ := os.ReadFile(s.answerPath(e.Name)) // none: nobody has been asked
	kept := strings.TrimSpace(string(text))
	if kept == declined || kept == accepted && s.holds(e) {
		return kept
	}
	return ""
}

// keep keeps an answer. Where it cannot be written the question is asked again, which is all that is lost.
func (s Store) keep(e *Entry, answer string) {
	if atomicfile.MkdirAll(s.Dir, 0o755) == nil {
		_ = atomicfile.Write(s.answerPath(e.Name), []byte(answer+"\n"), 0o644)
	}
}

// Run asks unless there is an answer of an earlier run, downloads the model unless it is installed, and returns its name; the name is empty
// if the person declines.
func (o *Offer) Run(ctx context.Context) (model string, err error) {
	e := &o.Model
	switch o.Pull.Store.answer(e) {
	case accepted:
		fmt.Fprintf(o.Out, "No model is set, using %s. For another one: --model.\n", e.Name)
		return e.Name, nil
	case declined:
		return "", nil
	}
	what := fmt.Sprintf("Download it (%.0f MB, %s) and continue", float64(e.Bytes)/1e6, e.Licence)
	if o.Pull.Store.holds(e) {
		what = "It is installed. Continue with it"
	}
	fmt.Fprintf(o.Out, "No model is set. %s detects %s.\n%s? [Y/n] ", e.Name, strings.Join(e.Finds, ", "), what)
	answer := make(chan string, 1)
	go func() { // reading a terminal cannot be interrupted
		defer close(answer)
		if line, err := bufio.NewReader(o.In).ReadString('\n'); err == nil {
			answer <- line
		}
	}()
	select {
	case <-ctx.Done():
		return "", context.Cause(ctx)
	case line, given := <-answer:
		if !given { // the terminal was closed
			return "", nil
		}
		switch strings.ToLower(strings.TrimSpace(line)) {
		case "", "y", "yes":
		default:
			o.Pull.Store.keep(e, declined)
			return "", nil
		}
	}
	o.Pull.Source = e.URL
	o.Pull.SHA256 = e.SHA256
	o.Pull.Name = e.Name
	if _, err := o.Pull.Run(ctx); err != nil {
		return "", err
	}
	o.Pull.Store.keep(e, accepted)
	fmt.Fprintf(o.Out, "Next time: --model %s, or model: {path: %s} in the configuration file.\n", e.Name, e.Name)
	return e.Name, nil
}

package catalogue

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
)

// Offer asks a person at a terminal whether to download a model.
type Offer struct {
	Model Entry
	In    io.Reader // the terminal
	Out   io.Writer
	Pull  Pull // Run sets the model
}

// Run asks, downloads the model unless it is installed, and returns its name; the name is empty if the person declines.
func (o *Offer) Run(ctx context.Context) (model string, err error) {
	e := &o.Model
	what := fmt.Sprintf("Download it (%.0f MB, %s) and continue", float64(e.Bytes)/1e6, e.Licence)
	if o.Pull.Store.holds(e) {
		what = "It is installed. Continue with it"
	}
	fmt.Fprintf(o.Out, "No model is set. %s detects %s.\n%s? [Y/n] ", e.Name, strings.Join(e.Finds, ", "), what)
	answer := make(chan string, 1)
	go func() { // reading a terminal cannot be interrupted
		line, err := bufio.NewReader(o.In).ReadString('\n')
		if err != nil {
			line = "no"
		}
		answer <- line
	}()
	select {
	case <-ctx.Done():
		return "", context.Cause(ctx)
	case line := <-answer:
		switch strings.ToLower(strings.TrimSpace(line)) {
		case "", "y", "yes":
		default:
			return "", nil
		}
	}
	o.Pull.Source = e.URL
	o.Pull.SHA256 = e.SHA256
	o.Pull.Name = e.Name
	if _, err := o.Pull.Run(ctx); err != nil {
		return "", err
	}
	fmt.Fprintf(o.Out, "Next time: --model %s, or model: {path: %s} in the configuration file.\n", e.Name, e.Name)
	return e.Name, nil
}

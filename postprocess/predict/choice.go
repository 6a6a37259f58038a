package predict

import (
	"fmt"
	"strings"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/auto"
	"github.com/edge-infer/edge-infer/engine/cuda"
)

// Choice is the backend that Open would use, and why it would not use others.
type Choice struct {
	// Backends are the candidates, best first. At most one of them is Chosen.
	Backends []auto.Backend `json:"backends"`
}

// Choose reports which backend Open tries first. It loads the libraries of the backends but opens no model, so that Open may still fall
// back to the next usable one.
func Choose(o Options) (Choice, error) {
	backends, err := auto.Report(o.Options, auto.Choice{Engine: o.Backend, Candidates: o.Candidates})
	return Choice{backends}, err
}

// Chosen returns the backend that Open tries first, nil when none is usable.
func (c Choice) Chosen() *auto.Backend {
	for i := range c.Backends {
		if c.Backends[i].Chosen {
			return &c.Backends[i]
		}
	}
	return nil
}

// String returns the chosen backend and why better ones are unusable, in one line.
func (c Choice) String() string {
	text := "no backend is usable"
	var refused []string
	for _, b := range c.Backends {
		if b.Chosen {
			text = fmt.Sprintf("%s %s", b.Title, b.Version)
			break
		}
		refused = append(refused, fmt.Sprintf("%s: %s", b.Title, strings.ReplaceAll(b.Reason, "\n", ", ")))
	}
	return strings.Join(append([]string{text}, refused...), "; ")
}

// GPU returns an error unless the GPU with that number is usable. It initializes the driver and allocates no device memory.
func GPU(number int) error {
	report := cuda.Probe()
	switch {
	case report.Err() != nil:
		return report.Err()
	case number < 0 || number >= len(report.Devices):
		return &engine.Error{
			Op: "open", Backend: "cuda", Kind: engine.ErrUnavailable,
			Message: fmt.Sprintf("there is no GPU %d, this machine has %d", number, len(report.Devices)),
		}
	}
	return nil
}

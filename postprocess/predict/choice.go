package predict

import (
	"fmt"
	"strings"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/auto"
	"github.com/edge-infer/edge-infer/engine/cuda"
)

// Choice says which backend Open would take, and why not the others.
type Choice struct {
	// Backends are those that come into question, best first. At most one of them is Chosen.
	Backends []auto.Backend `json:"backends"`
}

// Choose looks for the backends that o asks for, and says which one Open tries first. No model is opened, so it may still turn out that
// this one does not run it and the next usable one does. It loads the backends' libraries.
func Choose(o Options) (Choice, error) {
	backends, err := auto.Report(o.Options, auto.Choice{Engine: o.Backend, Candidates: o.Candidates})
	return Choice{backends}, err
}

// Chosen is the backend that Open tries first, nil when none is usable.
func (c Choice) Chosen() *auto.Backend {
	for i := range c.Backends {
		if c.Backends[i].Chosen {
			return &c.Backends[i]
		}
	}
	return nil
}

// String says in one sentence what is chosen and what is wrong with the backends before it.
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

// GPU reports why the GPU of that number cannot be used, nil when it can. It starts the driver and takes no memory of the device.
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

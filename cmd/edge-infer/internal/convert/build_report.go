package convert

import (
	"fmt"
	"io"
	"strings"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/accuracy"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/quantize"
	"github.com/edge-infer/edge-infer/engine/tensorrt"
)

// BuildReport is the result of a build.
type BuildReport struct {
	Version   int                 `json:"v"`
	Model     string              `json:"model"`
	Plan      string              `json:"plan,omitempty"` // empty if the gate refused it
	Precision engine.Precision    `json:"precision,omitempty"`
	Facts     *tensorrt.PlanFacts `json:"facts,omitempty"`
	Bytes     int64               `json:"bytes,omitempty"`
	// Unquantized are the output tensors of the layers that a calibrated plan keeps in FP16.
	Unquantized []string          `json:"unquantized,omitempty"`
	Verdict     *quantize.Verdict `json:"verdict,omitempty"`
	// Network is the median inference time on the gate's images in milliseconds.
	Network float64 `json:"network_p50_ms,omitempty"`
	// Search lists the plans of a search in the order they were built.
	Search  []SearchStep  `json:"search,omitempty"`
	Refused []RefusedPlan `json:"refused,omitempty"` // in the order they were tried
	Seconds float64       `json:"seconds"`
}

// RefusedPlan is a precision that did not pass the gate.
type RefusedPlan struct {
	Precision engine.Precision  `json:"precision"`
	Verdict   *quantize.Verdict `json:"verdict"`
}

// refusal returns the error of a build without any plan that passed the gate.
func (r *BuildReport) refusal() error {
	var tried []string
	for _, refused := range r.Refused {
		tried = append(tried, fmt.Sprintf("%s: %s", strings.ToUpper(string(refused.Precision)), strings.Join(refused.Verdict.Reasons, ", ")))
	}
	return fmt.Errorf("the gate refused every plan and none was kept: %s "+
		"(use more calibration images like the camera's, edge-infer quantize --search, or a higher precision)", strings.Join(tried, "; "))
}

// Print writes the report as text.
func (r *BuildReport) Print(out io.Writer) error {
	var text strings.Builder
	for i := range r.Search {
		fmt.Fprintf(&text, "%v\n", &r.Search[i])
	}
	for _, refused := range r.Refused {
		fmt.Fprintf(&text, "%s: gate %s\n", strings.ToUpper(string(refused.Precision)), accuracy.Text(refused.Verdict))
	}
	if r.Plan != "" {
		precision := strings.ToUpper(string(r.Precision))
		if r.Precision == engine.Auto {
			precision = "the precision of the file"
		}
		fmt.Fprintf(&text, "%s in %s for TensorRT %s on %s (%s): %d layers, %d bytes, built in %.1f s\n",
			r.Model, precision, r.Facts.Version, r.Facts.GPU, r.Facts.Architecture, r.Facts.Layers, r.Bytes, r.Facts.BuildSeconds)
		if r.Verdict != nil {
			fmt.Fprintf(&text, "gate %s; network p50 %.3f ms\n", accuracy.Text(r.Verdict), r.Network)
		}
		fmt.Fprintf(&text, "wrote %s\n", r.Plan)
	}
	_, err := io.WriteString(out, text.String())
	return err
}

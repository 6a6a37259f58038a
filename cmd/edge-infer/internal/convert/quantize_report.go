package convert

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/accuracy"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/quantize"
	"github.com/edge-infer/edge-infer/internal/atomicfile"
)

// QuantizeReport is the result of a quantization.
type QuantizeReport struct {
	Version      int                   `json:"v"`
	Model        string                `json:"model"`
	Output       string                `json:"output,omitempty"` // empty if the gate refused the model
	Precision    engine.Precision      `json:"precision"`
	Target       quantize.Target       `json:"target,omitempty"` // INT8 only
	Method       quantize.Method       `json:"method,omitempty"`
	ModelBytes   int                   `json:"model_bytes"`
	OutputBytes  int                   `json:"output_bytes"`
	Calibration  *Calibration          `json:"calibration,omitempty"`
	Layers       []quantize.Layer      `json:"layers,omitempty"`      // INT8 only
	Sensitivity  []quantize.LayerError `json:"sensitivity,omitempty"` // of a search, worst first
	Half         *quantize.FP16Report  `json:"half,omitempty"`        // FP16 only
	ModelsJudged int                   `json:"models_judged"`
	Verdict      *quantize.Verdict     `json:"verdict,omitempty"`
	Speed        *Speed                `json:"speed,omitempty"` // for ONNX Runtime only
	Seconds      float64               `json:"seconds"`

	table []byte // TensorRT calibration cache, if requested
}

// refusal returns the error of a model that failed the gate.
func (r *QuantizeReport) refusal(q *Quantize) error {
	remedy := "calibrate on more images like the camera's, try --search, another --method, or --precision fp16"
	if r.Precision == engine.FP16 {
		remedy = "keep layers in float32 with --exclude, or use the model as it is"
	}
	return fmt.Errorf("%s was not written, the gate refused the %s model: %s (%s)",
		q.Output, strings.ToUpper(q.Precision), strings.Join(r.Verdict.Reasons, ", "), remedy)
}

// Save writes the report as JSON.
func (r *QuantizeReport) Save(path string) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	if err := atomicfile.Write(path, append(data, '\n'), 0o644); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}

// Print writes the report as text.
func (r *QuantizeReport) Print(out io.Writer) error {
	text := fmt.Sprintf("%s in %s", r.Model, strings.ToUpper(string(r.Precision)))
	if r.Half != nil {
		text += fmt.Sprintf(": %d nodes in float16, %d in float32", r.Half.Converted, len(r.Half.KeptFP32))
	} else {
		quantizedLayers := 0
		for i := range r.Layers {
			if r.Layers[i].Quantized() {
				quantizedLayers++
			}
		}
		text += fmt.Sprintf(" for %s by %s: %d of %d layers", r.Target, r.Method, quantizedLayers, len(r.Layers))
	}
	if r.Calibration != nil {
		text += fmt.Sprintf(", %d calibration images", r.Calibration.Images)
	}
	text += fmt.Sprintf(", %d bytes from %d, %.1f s\n", r.OutputBytes, r.ModelBytes, r.Seconds)
	for _, layer := range r.Sensitivity {
		if layer.Excluded {
			text += fmt.Sprintf("%s %s stays in floating point: alone in INT8 it causes a relative error of %.6f of the head's outputs\n",
				layer.Operator, layer.Name, layer.Error)
		}
	}
	if r.Verdict != nil {
		text += "gate " + accuracy.Text(r.Verdict) + "\n"
	}
	if r.Target == quantize.ONNXRuntime {
		text += bitsText()
	}
	if r.Speed != nil {
		text += r.Speed.String() + "\n"
	}
	if r.Output != "" {
		text += "wrote " + r.Output + "\n"
	}
	_, err := io.WriteString(out, text)
	return err
}

package convert

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

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

// Print writes the report as text: the verdict and what it rests on, then the details.
func (r *QuantizeReport) Print(out io.Writer) error {
	_, err := io.WriteString(out, r.judgement()+r.details())
	return err
}

// judgement returns the verdict, the accuracy before and after, the speed and the written file.
func (r *QuantizeReport) judgement() string {
	precision := strings.ToUpper(string(r.Precision))
	text := precision + " not checked for accuracy\n"
	if v := r.Verdict; v != nil {
		text = precision + " passed\n"
		if !v.Passed {
			text = precision + " refused: " + strings.Join(v.Reasons, ", ") + "\n"
		}
		c := &v.Comparison
		if before, after := c.ReferenceAccuracy, c.CandidateAccuracy; before != nil && after != nil {
			text += fmt.Sprintf("%-10s %8s %8s %11s\n", "", "FP32", precision, "difference")
			text += fmt.Sprintf("%-10s %8.4f %8.4f %+11.4f\n", "mAP50", before.MAP50, after.MAP50, after.MAP50-before.MAP50)
			text += fmt.Sprintf("%-10s %8.4f %8.4f %+11.4f\n", "mAP50-95", before.MAP, after.MAP, after.MAP-before.MAP)
		}
		text += fmt.Sprintf("match rate %.4f: boxes of FP32 that %s has too, of %d in %d images\n", c.MatchRate, precision, c.Reference, c.Images)
	}
	if r.Speed != nil {
		text += r.Speed.String() + "\n"
	}
	if r.Output != "" {
		text += fmt.Sprintf("wrote %s, %.1f MB (%.1f MB before)\n", r.Output, megabytes(r.OutputBytes), megabytes(r.ModelBytes))
	}
	return text
}

func megabytes(bytes int) float64 { return float64(bytes) / 1e6 }

// details returns how the model was made.
func (r *QuantizeReport) details() string {
	text := fmt.Sprintf("\n%s in %s", r.Model, strings.ToUpper(string(r.Precision)))
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
	text += fmt.Sprintf(", %.1f s\n", r.Seconds)
	if v := r.Verdict; v != nil {
		text += fmt.Sprintf("score drift mean %.4f, max %.4f; %d boxes of another class", v.Comparison.MeanDrift, v.Comparison.MaxDrift,
			v.Comparison.Flipped)
		if v.Comparison.Loss != nil {
			text += fmt.Sprintf("; loss of mAP50-95 %v", v.Comparison.Loss)
		}
		text += "\n"
	}
	for _, layer := range r.Sensitivity {
		if layer.Excluded {
			text += fmt.Sprintf("%s %s kept in FP32: INT8 changes the output by %.2g %% (squared error, as --layer-loss)\n", layer.Operator,
				layer.Name, 100*layer.Error)
		}
	}
	if r.Target == quantize.ONNXRuntime {
		text += bitsText()
	}
	return text
}

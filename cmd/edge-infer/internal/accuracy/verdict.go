package accuracy

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/quantize"
)

// VerdictSuffix is the suffix of the file with the gate's verdict next to a model.
const VerdictSuffix = ".verdict.json"

// VerdictOn returns the gate's verdict on a model file: nil if there is none, an error if it belongs to another file.
func VerdictOn(model engine.Model) (*quantize.Verdict, error) {
	path := model.Path
	if model.Plan != "" {
		path = model.Plan
	}
	switch _, err := os.Stat(path + VerdictSuffix); {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	}
	file, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return quantize.ReadVerdict(path+VerdictSuffix, file)
}

// SaveVerdict writes a verdict next to its model file; nil removes the verdict of an earlier file with the same name.
func SaveVerdict(v *quantize.Verdict, file string) error {
	if v != nil {
		return v.Save(file + VerdictSuffix)
	}
	if err := os.Remove(file + VerdictSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the verdict on an earlier file: %w", err)
	}
	return nil
}

// Summary describes the known accuracy of a model in one line.
func Summary(v *quantize.Verdict) string {
	c := &v.Comparison
	text := fmt.Sprintf("%s: %.4f of %d boxes as in FP32", v.Precision, c.MatchRate, c.Reference)
	if c.ReferenceAccuracy != nil && c.CandidateAccuracy != nil {
		text += fmt.Sprintf(", mAP50-95 %.4f of %.4f", c.CandidateAccuracy.MAP, c.ReferenceAccuracy.MAP)
	}
	text += fmt.Sprintf(", on %d images, %s", c.Images, v.Time.Format(time.DateOnly))
	for _, r := range v.Refused {
		text += fmt.Sprintf("; %s refused: %s", r.Precision, strings.Join(r.Reasons, ", "))
	}
	return text
}

// Text describes a verdict in one line.
func Text(v *quantize.Verdict) string {
	c := &v.Comparison
	text := "passed"
	if !v.Passed {
		text = "refused: " + strings.Join(v.Reasons, ", ")
	}
	text += fmt.Sprintf("; match rate %.4f of %d boxes in %d images, %d flipped class, score drift mean %.4f max %.4f",
		c.MatchRate, c.Reference, c.Images, c.Flipped, c.MeanDrift, c.MaxDrift)
	if c.ReferenceAccuracy != nil && c.CandidateAccuracy != nil {
		text += fmt.Sprintf("; mAP50 %.4f of %.4f, mAP50-95 %.4f of %.4f",
			c.CandidateAccuracy.MAP50, c.ReferenceAccuracy.MAP50, c.CandidateAccuracy.MAP, c.ReferenceAccuracy.MAP)
	}
	if c.Loss != nil {
		text += fmt.Sprintf("; loss of mAP50-95 %v", c.Loss)
	}
	return text
}

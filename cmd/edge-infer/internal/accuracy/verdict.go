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

// VerdictSuffix is what the gate's verdict on a file is called beside it.
const VerdictSuffix = ".verdict.json"

// VerdictOn is the gate's verdict on the file that runs: nil without one, an error when it is about another file.
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

// SaveVerdict keeps a verdict beside the file that it is about; without one it removes that of an earlier file of the same name.
func SaveVerdict(v *quantize.Verdict, file string) error {
	if v != nil {
		return v.Save(file + VerdictSuffix)
	}
	if err := os.Remove(file + VerdictSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the verdict on an earlier file: %w", err)
	}
	return nil
}

// Summary says in one line what is known of the accuracy of what runs.
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

// Text says in one line what the gate found.
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

package main

import (
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/quantize"
	"github.com/edge-infer/edge-infer/mqtt"
)

// proof is the gate's verdict on the file that runs: nil without one, or when it is about another file, which is logged.
func proof(model engine.Model, logger *slog.Logger) *quantize.Verdict {
	path := model.Path
	if model.Plan != "" {
		path = model.Plan
	}
	if _, err := os.Stat(path + verdictSuffix); err != nil {
		return nil
	}
	file, err := os.ReadFile(path)
	var v *quantize.Verdict
	if err == nil {
		v, err = quantize.ReadVerdict(path+verdictSuffix, file)
	}
	if err != nil {
		logger.Warn("accuracy not known", "error", err)
	}
	return v
}

// proofText says in one line what is known of the accuracy of what runs.
func proofText(v *quantize.Verdict) string {
	c := &v.Comparison
	text := fmt.Sprintf("%s: %.4f of %d boxes as in FP32", v.Precision, c.MatchRate, c.Reference)
	if c.ReferenceAccuracy != nil && c.CandidateAccuracy != nil {
		text += fmt.Sprintf(", mAP50-95 %.4f of %.4f", c.CandidateAccuracy.MAP, c.ReferenceAccuracy.MAP)
	}
	text += fmt.Sprintf(", on %d pictures, %s", c.Pictures, v.Time.Format(time.DateOnly))
	for _, r := range v.Refused {
		text += fmt.Sprintf("; %s refused: %s", r.Precision, strings.Join(r.Reasons, ", "))
	}
	return text
}

// accuracyStatus is the MQTT status' form of a verdict.
func accuracyStatus(v *quantize.Verdict) *mqtt.Accuracy {
	if v == nil {
		return nil
	}
	c := &v.Comparison
	a := &mqtt.Accuracy{
		Precision: string(v.Precision), Passed: v.Passed, MatchRate: c.MatchRate, Boxes: c.Reference, Flipped: c.Flipped, Pictures: c.Pictures, Time: v.Time,
	}
	if c.ReferenceAccuracy != nil && c.CandidateAccuracy != nil {
		a.Labelled, a.MAP50, a.MAP = true, c.CandidateAccuracy.MAP50, c.CandidateAccuracy.MAP
		a.ReferenceMAP50, a.ReferenceMAP = c.ReferenceAccuracy.MAP50, c.ReferenceAccuracy.MAP
	}
	for _, r := range v.Refused {
		a.Refused = append(a.Refused, mqtt.RefusedPrecision{Precision: string(r.Precision), Reasons: r.Reasons})
	}
	return a
}

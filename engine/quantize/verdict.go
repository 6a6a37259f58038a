package quantize

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/edge-infer/edge-infer/engine"
)

// Comparison compares the candidate's detections with the reference's.
type Comparison struct {
	Images    int     `json:"images"`
	Reference int     `json:"reference"`  // boxes of the reference
	Candidate int     `json:"candidate"`  // boxes of the candidate
	Matched   int     `json:"matched"`    // IoU 0.5 or more and the same class
	Flipped   int     `json:"flipped"`    // IoU 0.5 or more and another class
	MatchRate float64 `json:"match_rate"` // 2 matched / (reference + candidate)
	MeanDrift float64 `json:"mean_drift"` // of the scores of matched boxes
	MaxDrift  float64 `json:"max_drift"`
	// The accuracies are nil without labels.
	ReferenceAccuracy *Accuracy `json:"reference_accuracy,omitempty"`
	CandidateAccuracy *Accuracy `json:"candidate_accuracy,omitempty"`
	Loss              *Loss     `json:"loss,omitempty"`
}

// Accuracy is mean average precision by the COCO protocol, 0 to 1.
type Accuracy struct {
	MAP50 float64 `json:"map50"`
	MAP   float64 `json:"map50_95"`
}

// Loss is the candidate's loss of mAP50-95; negative if it gains.
type Loss struct {
	MAP float64 `json:"map50_95"`
	// Low and High are the limits of the 95 % confidence interval.
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// String returns the loss with its confidence interval.
func (l *Loss) String() string {
	return fmt.Sprintf("%.4f (95 %% certain: %.4f to %.4f)", l.MAP, l.Low, l.High)
}

// Defaults of NewVerdict, and the minimum number of reference boxes for a verdict.
const (
	DefaultMatchRate  = 0.97
	DefaultMaxLoss    = 0.01
	MinReferenceBoxes = 20
)

// minAccuracy is the mAP50-95 of a reference below which its loss is meaningless.
const minAccuracy = 0.02

// Verdict is the decision whether a converted model may be used: by its loss of mAP50-95 if there are labels, otherwise by the share of
// matching boxes. It is stored next to the model file.
type Verdict struct {
	Passed bool `json:"passed"`
	// Reasons explain a refusal; empty if passed.
	Reasons    []string   `json:"reasons,omitempty"`
	Comparison Comparison `json:"comparison"`
	// The limits of the gate.
	RequiredMatchRate float64   `json:"required_match_rate"`
	AllowedLoss       float64   `json:"allowed_loss"`
	Samples           string    `json:"samples"` // hash of the samples
	Skipped           []string  `json:"skipped,omitempty"`
	Time              time.Time `json:"time"`
	// Precision of the judged model, and SHA-256 of its file.
	Precision engine.Precision `json:"precision,omitempty"`
	File      string           `json:"file_sha256,omitempty"`
	// Refused lists the precisions that failed before.
	Refused []Refusal `json:"refused,omitempty"`
}

// Refusal is a precision that failed the gate.
type Refusal struct {
	Precision engine.Precision `json:"precision"`
	Reasons   []string         `json:"reasons"`
}

// NewVerdict decides by a comparison on the samples, of which skipped could not be read. matchRate is the minimum match rate without
// labels, DefaultMatchRate if 0. maxLoss is the largest loss of mAP50-95 with labels, DefaultMaxLoss if 0; the upper limit of the
// confidence interval must be at most twice that, because few images prove nothing.
func NewVerdict(c Comparison, matchRate, maxLoss float64, samples Samples, skipped []string) (*Verdict, error) {
	hash, err := samples.Hash()
	if err != nil {
		return nil, fmt.Errorf("gate: %w", err)
	}
	v := &Verdict{
		Comparison: c, RequiredMatchRate: cmp.Or(matchRate, DefaultMatchRate), AllowedLoss: cmp.Or(maxLoss, DefaultMaxLoss), Samples: hash,
		Skipped: skipped, Time: time.Now().UTC().Truncate(time.Second),
	}
	v.decide()
	return v, nil
}

// decide sets Passed and Reasons.
func (v *Verdict) decide() {
	c := &v.Comparison
	if c.Reference < MinReferenceBoxes {
		v.Reasons = append(v.Reasons, fmt.Sprintf(
			"the reference found %d boxes in %d images, fewer than %d prove nothing: use images of what the model detects",
			c.Reference, c.Images, MinReferenceBoxes))
	}
	if c.Loss != nil {
		v.Reasons = append(v.Reasons, v.lossReasons()...)
	} else if c.MatchRate < v.RequiredMatchRate {
		v.Reasons = append(v.Reasons, fmt.Sprintf("match rate %.4f is under %.4f", c.MatchRate, v.RequiredMatchRate))
	}
	v.Passed = len(v.Reasons) == 0
}

// lossReasons returns the reasons why the loss of mAP50-95 is too large or too uncertain.
func (v *Verdict) lossReasons() []string {
	loss, of := v.Comparison.Loss, v.Comparison.ReferenceAccuracy
	switch {
	case of.MAP < minAccuracy:
		return []string{fmt.Sprintf(
			"the reference itself reaches mAP50-95 %.4f only, are these the model's labels?", of.MAP)}
	case loss.MAP > v.AllowedLoss:
		return []string{fmt.Sprintf("mAP50-95 fell by %v from %.4f, more than %.4f", loss, of.MAP, v.AllowedLoss)}
	case loss.High > 2*v.AllowedLoss:
		return []string{fmt.Sprintf("mAP50-95 fell by %v: with so few images it could be more than twice %.4f, label more", loss, v.AllowedLoss)}
	}
	return nil
}

// Save writes the verdict as JSON.
func (v *Verdict) Save(path string) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("save verdict: %w", err)
	}
	return writeFile(path, append(data, '\n'))
}

// SetModel sets the precision and the file hash of the judged model.
func (v *Verdict) SetModel(file []byte, precision engine.Precision) {
	v.File, v.Precision = hashBytes(file), precision
}

// ReadVerdict reads a verdict. A verdict on a file with other bytes is an error.
func ReadVerdict(path string, file []byte) (*Verdict, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read verdict: %w", err)
	}
	v := new(Verdict)
	if err := json.Unmarshal(data, v); err != nil {
		return nil, fmt.Errorf("read verdict %s: %w", path, err)
	}
	if v.File != hashBytes(file) {
		return nil, unsupported("verdict", "%s is about another file", "judge this one with edge-infer validate --gate", path)
	}
	return v, nil
}

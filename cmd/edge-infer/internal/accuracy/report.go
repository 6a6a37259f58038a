package accuracy

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/quantize"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/evaluate"
)

// Report is the result of a validation.
type Report struct {
	Version    int        `json:"v"`
	Convention Convention `json:"convention"`
	Measurement
	Tiles        *Tiles                       `json:"tiles,omitempty"`
	Augment      []string                     `json:"augment,omitempty"`
	Images       int                          `json:"images"`
	Classes      []ClassAccuracy              `json:"classes,omitempty"`
	Segmentation []ClassSegmentation          `json:"segmentation,omitempty"` // by class
	Best         *OperatingPoint              `json:"best,omitempty"`
	Curves       *Curves                      `json:"curves,omitempty"`
	Confusion    *Confusion                   `json:"confusion,omitempty"`
	Reference    *Measurement                 `json:"reference,omitempty"`
	Agreement    *evaluate.AgreementReport    `json:"agreement,omitempty"`
	Maps         *evaluate.MapAgreementResult `json:"map_agreement,omitempty"` // with the reference, of networks for maps
	Verdict      *quantize.Verdict            `json:"verdict,omitempty"`       // of the gate
	Seconds      float64                      `json:"seconds"`
}

// Tiles configures tiled inference, in addition to the whole image.
type Tiles struct {
	Side    int     `json:"side"`    // in pixels
	Overlap float64 `json:"overlap"` // share of the side
}

// Measurement is the result of one engine.
type Measurement struct {
	Model          string           `json:"model"`
	Backend        string           `json:"backend"`
	BackendVersion string           `json:"backend_version"`
	Device         string           `json:"device"`
	Precision      engine.Precision `json:"precision"`
	Image          string           `json:"image,omitempty"` // preprocessing, beginning with the size
	Bytes          int              `json:"model_bytes"`
	Request        float64          `json:"request_p50_ms"`             // from the decoded image to the outputs
	Inference      float64          `json:"inference_p50_ms,omitempty"` // inference alone, if the backend measures it
	Measure        string           `json:"measure,omitempty"`          // similarity of detections and labels
	MAP50          *float64         `json:"map50,omitempty"`            // absent without labels
	MAP            *float64         `json:"map50_95,omitempty"`
	Top1           *float64         `json:"top1,omitempty"` // of a classifier
	Top5           *float64         `json:"top5,omitempty"`
	MeanIoU        *float64         `json:"miou,omitempty"` // of semantic segmentation
	PixelAccuracy  *float64         `json:"pixel_accuracy,omitempty"`
	Depth          *DepthAccuracy   `json:"depth,omitempty"`

	task          engine.Task
	width, height int // of the network's input
}

// ClassAccuracy is the accuracy of one class. Precision and recall are those at the confidence of Report.Best and IoU 0.5.
type ClassAccuracy struct {
	Label     string  `json:"label"`
	Count     int     `json:"objects"`
	Precision float64 `json:"precision"`
	Recall    float64 `json:"recall"`
	AP50      float64 `json:"ap50"`
	AP        float64 `json:"ap50_95"`
}

// score fills in the mean average precision.
func (m *Measurement) score(dataset *evaluate.Dataset, seen [][]postprocess.Detection) evaluate.Result {
	if dataset.ClassDirectories {
		m.rank(dataset, seen)
		return evaluate.Result{}
	}
	accuracy := evaluate.Accuracy{Similarity: measure(m.task, dataset)}
	m.Measure = accuracy.Similarity.String()
	for i := range dataset.Images {
		accuracy.Add(dataset.Images[i].Truths, seen[i])
	}
	result := accuracy.Result()
	m.MAP50, m.MAP = &result.MAP50, &result.MAP
	return result
}

// measure returns the similarity of the task, or boxes if the labels have nothing else.
func measure(task engine.Task, dataset *evaluate.Dataset) evaluate.Similarity {
	own := evaluate.SimilarityOf(task)
	for i := range dataset.Images {
		for j := range dataset.Images[i].Truths {
			if own.Labelled(&dataset.Images[i].Truths[j]) {
				return own
			}
		}
	}
	return evaluate.ByBox
}

// rank fills in the accuracy of a classifier.
func (m *Measurement) rank(dataset *evaluate.Dataset, seen [][]postprocess.Detection) {
	var ranking evaluate.TopK
	for i := range dataset.Images {
		for j := range dataset.Images[i].Truths {
			ranking.Add(dataset.Images[i].Truths[j].Class, seen[i])
		}
	}
	first, five := ranking.Accuracy()
	m.Measure, m.Top1, m.Top5 = "best classes", &first, &five
}

// score fills in all results that need labels.
func (r *Report) score(dataset *evaluate.Dataset, seen [][]postprocess.Detection, labels []string, detect *config.Detect) {
	result := r.Measurement.score(dataset, seen)
	if dataset.ClassDirectories {
		return
	}
	r.Curves, r.Best = newCurves(&result, labels)
	for _, class := range result.Classes {
		at := class.Curve.At(float32(r.Best.Confidence))
		r.Classes = append(r.Classes, ClassAccuracy{
			Label: postprocess.Label(labels, class.Class), Count: class.Truths, Precision: at.Precision, Recall: at.Recall,
			AP50: class.AP50, AP: class.AP,
		})
	}
	r.Confusion = newConfusion(dataset, seen, labels, float32(detect.Confidence), float32(detect.IoU))
}

// String describes the model with its size, speed and accuracy.
func (m *Measurement) String() string {
	text := fmt.Sprintf("%s on %s %s: %d bytes, median %.1f ms", m.Model, m.Backend, m.Precision, m.Bytes, m.Request)
	if m.Inference > 0 {
		text += fmt.Sprintf(" (network %.1f)", m.Inference)
	}
	if m.MAP != nil {
		text += fmt.Sprintf(", mAP50 %.4f, mAP50-95 %.4f of %s", *m.MAP50, *m.MAP, m.Measure)
	}
	if m.MeanIoU != nil {
		text += fmt.Sprintf(", mIoU %.4f, pixel accuracy %.4f", *m.MeanIoU, *m.PixelAccuracy)
	}
	if d := m.Depth; d != nil {
		text += fmt.Sprintf(", abs rel %.4f, RMSE %.4f, delta<1.25 %.4f of %d images, %s", d.AbsRel, d.RMSE, d.Delta125, d.Images, m.Measure)
	}
	if m.Top1 != nil {
		text += fmt.Sprintf(", top-1 %.4f, top-5 %.4f", *m.Top1, *m.Top5)
	}
	return text
}

// all returns the means over the classes.
func (r *Report) all() ClassAccuracy {
	mean := ClassAccuracy{Label: "all", AP50: *r.MAP50, AP: *r.MAP}
	for _, class := range r.Classes {
		mean.Count += class.Count
		mean.Precision += class.Precision / float64(len(r.Classes))
		mean.Recall += class.Recall / float64(len(r.Classes))
	}
	return mean
}

// Refusal returns an error if the gate refused the model.
func (r *Report) Refusal() error {
	if r.Verdict == nil || r.Verdict.Passed {
		return nil
	}
	return fmt.Errorf("the gate refused model %s: %s", r.Model, strings.Join(r.Verdict.Reasons, ", "))
}

// Print writes the report as text.
func (r *Report) Print(out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "%d images in %.1f s\nmodel %s\n", r.Images, r.Seconds, r.Measurement.String())
	if r.Image != "" {
		fmt.Fprintf(table, "images taken as %s\n", r.Image)
	}
	if len(r.Augment) > 0 {
		fmt.Fprintf(table, "test-time augmentation: %s\n", strings.Join(r.Augment, ", "))
	}
	if r.Tiles != nil {
		fmt.Fprintf(table, "tiles of %d pixels with overlap %v, and the whole image\n", r.Tiles.Side, r.Tiles.Overlap)
	}
	if r.MAP != nil {
		fmt.Fprintf(table, "%s\n", r.Convention.String())
		fmt.Fprintf(table, "class\tobjects\tP\tR\tmAP50\tmAP50-95\n")
		for _, class := range append([]ClassAccuracy{r.all()}, r.Classes...) {
			fmt.Fprintf(table, "%s\t%d\t%.4f\t%.4f\t%.4f\t%.4f\n", class.Label, class.Count, class.Precision, class.Recall, class.AP50, class.AP)
		}
	}
	if len(r.Segmentation) > 0 {
		fmt.Fprintf(table, "class\tpixels\tIoU\taccuracy\n")
		for _, c := range r.Segmentation {
			fmt.Fprintf(table, "%s\t%d\t%.4f\t%.4f\n", c.Label, c.Pixels, c.IoU, c.Accuracy)
		}
	}
	if r.Best != nil {
		fmt.Fprintf(table, "best mean F1 %.4f at --confidence %.2f, at which P and R are measured\n", r.Best.F1, r.Best.Confidence)
	}
	if r.Reference != nil {
		fmt.Fprintf(table, "reference %s\n", r.Reference)
	}
	if a := r.Agreement; a != nil {
		fmt.Fprintf(table, "against the reference: match rate %.4f, %d matched, %d flipped class, %d missing, %d extra, "+
			"score drift mean %.4f max %.4f\n", a.MatchRate, a.Matched, a.Flipped, a.Missing, a.Extra, a.MeanDrift, a.MaxDrift)
	}
	if a := r.Maps; a != nil {
		fmt.Fprintf(table, "against the reference: %s\n", agreed(a, r.task))
	}
	if r.Verdict != nil {
		fmt.Fprintf(table, "gate %s\n", Text(r.Verdict))
	}
	return table.Flush()
}

// agreed describes the agreement of maps with the reference.
func agreed(a *evaluate.MapAgreementResult, task engine.Task) string {
	if task == engine.Depth {
		return fmt.Sprintf("depths %.4g off in the mean and %.4g at most, in the mean %.4f of their size, delta<1.25 %.4f", a.MeanError,
			a.MaxError, a.Relative, a.Delta125)
	}
	return fmt.Sprintf("%.4f of the pixels have its class, %.4f in the image with the fewest, mIoU %.4f", a.Same, a.SameMin, a.MeanIoU)
}

// median returns 0 for an empty list.
func median(durations []time.Duration) time.Duration {
	if len(durations) == 0 {
		return 0
	}
	slices.Sort(durations)
	return durations[len(durations)/2]
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

package accuracy

import (
	"fmt"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// The conventions' names.
const (
	Published = "published"
	Service   = "service"
)

// Convention is which detections of a detector average precision counts. Two figures compare only by the same convention.
type Convention struct {
	Name       string  `json:"name"`
	MultiLabel bool    `json:"multi_label"` // a box counts once for every class over the threshold, not once for its best
	IoU        float32 `json:"iou"`         // of suppression
	Limit      int     `json:"limit"`       // detections of an image
	Threshold  float32 `json:"threshold"`   // lowest score
}

// published is how figures on COCO are made, those of Ultralytics and others.
func published() Convention {
	return Convention{Name: Published, MultiLabel: true, IoU: 0.7, Limit: 300, Threshold: postprocess.EvaluationMinScore}
}

// newConvention finds a convention by its name. That of service follows the settings.
func newConvention(name string, detect *config.Detect) (Convention, error) {
	switch name {
	case Published:
		return published(), nil
	case Service:
		return Convention{Name: Service, IoU: float32(detect.IoU), Limit: detect.MaxDetections, Threshold: postprocess.EvaluationMinScore}, nil
	}
	return Convention{}, config.Usagef("--convention %q must be %s or %s", name, Published, Service)
}

// decode has a network give the detections of the convention.
func (c *Convention) decode(to *predict.Decoding) {
	to.MultiLabel, to.IoU, to.Limit, to.MinScore = c.MultiLabel, c.IoU, c.Limit, c.Threshold
}

// String says what counts.
func (c *Convention) String() string {
	classes := "the best class of a box"
	if c.MultiLabel {
		classes = "every class of a box"
	}
	return fmt.Sprintf("%s convention: %s from score %.3g, suppression at IoU %.2g, %d detections an image", c.Name, classes, c.Threshold,
		c.IoU, c.Limit)
}

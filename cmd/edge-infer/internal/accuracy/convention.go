package accuracy

import (
	"fmt"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// Names of conventions.
const (
	Published = "published"
	Service   = "service"
)

// Convention defines which detections average precision counts. Figures are comparable only with the same convention.
type Convention struct {
	Name       string  `json:"name"`
	MultiLabel bool    `json:"multi_label"` // a box counts for every class over the threshold, not only the best
	IoU        float32 `json:"iou"`         // NMS threshold
	Limit      int     `json:"limit"`       // detections per image
	Threshold  float32 `json:"threshold"`   // minimum score
}

// published returns the convention of published COCO figures, as used by Ultralytics and others.
func published() Convention {
	return Convention{Name: Published, MultiLabel: true, IoU: 0.7, Limit: 300, Threshold: postprocess.EvaluationMinScore}
}

// newConvention returns a convention by name. The service convention follows the settings.
func newConvention(name string, detect *config.Detect) (Convention, error) {
	switch name {
	case Published:
		return published(), nil
	case Service:
		return Convention{Name: Service, IoU: float32(detect.IoU), Limit: detect.MaxDetections, Threshold: postprocess.EvaluationMinScore}, nil
	}
	return Convention{}, config.Usagef("--convention %q must be %s or %s", name, Published, Service)
}

// decode sets the decoding options of the convention.
func (c *Convention) decode(to *predict.Decoding) {
	to.MultiLabel, to.IoU = c.MultiLabel, c.IoU
	to.Limit, to.MinScore = c.Limit, c.Threshold
}

// String describes the convention.
func (c *Convention) String() string {
	classes := "the best class of a box"
	if c.MultiLabel {
		classes = "every class of a box"
	}
	return fmt.Sprintf("%s convention: %s from score %.3g, suppression at IoU %.2g, %d detections an image", c.Name, classes, c.Threshold,
		c.IoU, c.Limit)
}

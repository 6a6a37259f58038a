package predict

import (
	"path/filepath"
	"regexp"
	"strings"

	"github.com/edge-infer/edge-infer/engine/onnx"
)

// ultralyticsModel matches the names of models that Ultralytics' tools download themselves, without an extension.
var ultralyticsModel = regexp.MustCompile(`^(?i:yolo(v?\d+|_nas)|rtdetr-|sam\d?_|FastSAM-)[\w.-]*$`)

// modelHint returns what leads on where there is no file of a model's name.
func modelHint(model string) string {
	extension := strings.ToLower(filepath.Ext(model))
	name := strings.TrimSuffix(filepath.Base(model), filepath.Ext(model))
	switch {
	case extension == ".pt":
		return "a PyTorch checkpoint has to be exported where it is: " + onnx.ExportCommand(filepath.Base(model))
	case filepath.Base(model) != model:
	case extension == "" && !ultralyticsModel.MatchString(model):
		return "name an ONNX file, demo for the embedded model, or a model of edge-infer model list; edge-infer model pull yolox-s fetches one"
	case (extension == "" || extension == ".onnx") && ultralyticsModel.MatchString(name):
		return "edge-infer model pull yolox-s fetches a detector of the same classes; with Ultralytics: " + onnx.ExportCommand(name+".pt")
	}
	return "name an ONNX file, or demo for the embedded model"
}

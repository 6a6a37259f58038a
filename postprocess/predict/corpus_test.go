package predict

import (
	"encoding/binary"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/onnx"
	"github.com/edge-infer/edge-infer/postprocess/head"
)

// tensor is an input or output of a corpus network: floats unless the name says otherwise, as in "labels:int64". A size of -1 is open.
type tensor struct {
	name  string
	shape []int64
}

func out(name string, shape ...int64) tensor { return tensor{name, shape} }

// kind takes the type off a name.
func (c tensor) kind() (string, onnx.TensorProto_DataType) {
	name, kind, _ := strings.Cut(c.name, ":")
	switch kind {
	case "int64":
		return name, onnx.TensorProto_INT64
	case "int32":
		return name, onnx.TensorProto_INT32
	case "uint8":
		return name, onnx.TensorProto_UINT8
	case "logits":
		return name, onnx.TensorProto_FLOAT
	}
	return c.name, onnx.TensorProto_FLOAT
}

// exported is a network that has the outputs of a family, and nothing in them: every number is 0, or -9 in "x:logits", and open sizes come
// out as 3.
type exported struct {
	inputs, outputs []tensor
	metadata        map[string]string
}

func (e exported) bytes(t *testing.T) []byte {
	t.Helper()
	g := &onnx.GraphProto{Name: proto.String("corpus")}
	for _, in := range e.inputs {
		name, kind := in.kind()
		g.Input = append(g.Input, onnx.NewValueInfo(name, kind, in.shape))
	}
	for _, o := range e.outputs {
		name, kind := o.kind()
		g.Output = append(g.Output, onnx.NewValueInfo(name, kind, o.shape))
		size := make([]int64, len(o.shape))
		for i, n := range o.shape {
			if size[i] = n; n < 0 {
				size[i] = 3
			}
		}
		g.Initializer = append(g.Initializer, onnx.NewInts(name+".shape", size, int64(len(size))))
		zero := &onnx.TensorProto{DataType: proto.Int32(int32(kind)), Dims: []int64{1}, RawData: make([]byte, 8)}
		switch kind {
		case onnx.TensorProto_FLOAT, onnx.TensorProto_INT32:
			zero.RawData = zero.RawData[:4]
		case onnx.TensorProto_UINT8:
			zero.RawData = zero.RawData[:1]
		}
		if strings.HasSuffix(o.name, ":logits") {
			binary.LittleEndian.PutUint32(zero.RawData, math.Float32bits(-9))
		}
		g.Node = append(g.Node, onnx.NewNode("ConstantOfShape", name+"/zeros", []string{name + ".shape"}, []string{name}, &onnx.AttributeProto{
			Name: proto.String("value"), Type: onnx.AttributeProto_TENSOR.Enum(), T: zero,
		}))
	}
	m := &onnx.Model{Proto: &onnx.ModelProto{
		IrVersion: proto.Int64(8), Graph: g, OpsetImport: []*onnx.OperatorSetIdProto{{Domain: proto.String(""), Version: proto.Int64(13)}},
	}}
	for key, value := range e.metadata {
		m.SetMetadata(key, value)
	}
	data, err := m.Bytes()
	require.NoError(t, err)
	return data
}

// ultralytics is what an export of Ultralytics says of itself.
func ultralytics(task string, classes int, more ...string) map[string]string {
	var names []string
	for i := range classes {
		names = append(names, strconv.Itoa(i)+": 'class"+strconv.Itoa(i)+"'")
	}
	m := map[string]string{"task": task, "stride": "32", "batch": "1", "imgsz": "[640, 640]", "names": "{" + strings.Join(names, ", ") + "}"}
	for i := 0; i < len(more); i += 2 {
		m[more[i]] = more[i+1]
	}
	return m
}

// noHead is the end of a refusal that knows nothing better.
const noHead = " match no supported layout (edge-infer model layouts lists them)"

const (
	like8      = " looks like yolov8, but "
	like5      = " looks like yolov5, but "
	likeClass  = " looks like classify, but "
	nothing    = "no class names in the file: is this a detection, pose or mask model? (detection: name its "
	noClasses  = "no class names in the file: are its numbers classes? (name them with --labels FILE)"
	otherNames = " (give the labels that belong to it with --labels FILE)"
	twoClasses = " looks like end2end, but boxes with the scores of 2 classes would look the same (confirm it with --layout end2end)"
	arrays     = " (infer --input runs it on arrays)"
)

// confirmCOCO is confirm for 80 classes.
func confirmCOCO(string) string { return " with --labels FILE or coco)" }

// confirm is what would settle a layout.
func confirm(string) string { return " with --labels FILE)" }

// anchors is what would settle a layout whose boxes need anchors.
const anchors = "its anchors are not in the file (select --layout yolov5-maps, or yolov7-maps for those of YOLOv7)"

// faces lists the outputs of SCRFD for three scales with so many boxes, with a batch or without.
func faces(batch int64, boxes ...int64) (all []tensor) {
	for kind, columns := range []int64{1, 4, 10} {
		for i, count := range boxes {
			shape := []int64{count, columns}
			if batch > 0 {
				shape = []int64{batch, count, columns}
			}
			all = append(all, out(strconv.Itoa(448+23*i+3*kind), shape...))
		}
	}
	return all
}

// family is a network that people bring, and what becomes of it.
type family struct {
	name    string
	side    int64 // of the square input, 640 when 0
	outputs []tensor
	inputs  []tensor // where they are not one image
	about   map[string]string
	labels  int // in a labels file
	layout  head.Layout
	want    head.Layout // recognised
	refusal string
}

// corpus is as long as the list of networks that people bring.
func corpus() []family {
	img := out("images", -1, 3, 640, 640)
	sizes := []tensor{img, out("orig_target_sizes:int64", -1, 2)}
	paddle := []tensor{out("im_shape", -1, 2), out("image", -1, 3, 640, 640), out("scale_factor", -1, 2)}
	detected := ultralytics("detect", 80)
	return []family{
		// Ultralytics detectors and their relatives.
		{name: "YOLOv8 to 12", outputs: []tensor{out("output0", -1, 84, 8400)}, about: detected, want: "yolov8"},
		{
			name: "YOLOv8, one class", outputs: []tensor{out("output0", 1, 5, 8400)}, about: ultralytics("detect", 1),
			want: "yolov8",
		},
		{
			name: "YOLOv8-p6", side: 1280, outputs: []tensor{out("output0", 1, 84, 34000)},
			about: ultralytics("detect", 80, "stride", "64"), want: "yolov8",
		},
		{name: "YOLOv8-p2", outputs: []tensor{out("output0", 1, 84, 34000)}, about: detected, want: "yolov8"},
		{name: "YOLOv3-tinyu", outputs: []tensor{out("output0", 1, 84, 2000)}, about: detected, want: "yolov8"},
		{name: "YOLOv8, transposed", outputs: []tensor{out("output0", 1, 8400, 84)}, about: detected, want: "yolov8-rows"},
		{name: "YOLOv8, transposed, with labels", outputs: []tensor{out("output0", -1, 8400, 84)}, labels: 80, want: "yolov8-rows"},
		{name: "YOLOv7 with its own suppression", outputs: []tensor{out("output", -1, 7)}, labels: 80, want: "yolov7-nms"},
		{
			name: "YOLOv7 with its own suppression, without labels", outputs: []tensor{out("output", -1, 7)},
			refusal: "output [-1 7] looks like yolov7-nms, but no class names in the file: are its rows boxes? (name the classes with " +
				"--labels FILE)",
		},
		{name: "DeepStream-Yolo", outputs: []tensor{out("output", -1, 8400, 6)}, labels: 80, want: "deepstream-yolo"},
		{name: "DeepStream-Yolo of YOLOv5", outputs: []tensor{out("output", -1, 25200, 6)}, labels: 80, want: "deepstream-yolo"},
		{
			name: "YOLOv8 by trtexec", outputs: []tensor{out("output0", 1, 84, 8400)},
			refusal: "output0 [1 84 8400]" + like8 + nothing + "80 classes" + confirmCOCO("yolov8"),
		},
		{name: "YOLOv8 by trtexec with labels", outputs: []tensor{out("output0", 1, 84, 8400)}, labels: 80, want: "yolov8"},
		{
			name: "YOLOv8 by trtexec with a layout", outputs: []tensor{out("output0", 1, 84, 8400)}, layout: "yolov8",
			want: "yolov8",
		},
		{
			name: "YOLOv8 with the labels of another", outputs: []tensor{out("output0", 1, 84, 8400)}, about: detected, labels: 6,
			refusal: "output0 [1 84 8400]" + like8 + "it has 80 classes and the model has 6 labels" + otherNames,
		},
		{
			name: "YOLOv5", outputs: []tensor{out("output0", 1, 25200, 85)},
			about: map[string]string{"stride": "32", "names": ultralytics("", 80)["names"]}, want: "yolov5",
		},
		{
			name:    "YOLOv5 with its maps",
			outputs: []tensor{out("output", 1, 25200, 85), out("339", 1, 3, 80, 80, 85), out("391", 1, 3, 40, 40, 85), out("443", 1, 3, 20, 20, 85)},
			labels:  80, want: "yolov5",
		},
		{
			name: "YOLOv7", outputs: []tensor{out("output", 1, 25200, 85)},
			refusal: "output [1 25200 85]" + like5 + nothing + "80 classes" + confirmCOCO("yolov5"),
		},
		{
			name: "YOLOv7 without --grid", labels: 80,
			outputs: []tensor{out("output", 1, 3, 80, 80, 85), out("616", 1, 3, 40, 40, 85), out("628", 1, 3, 20, 20, 85)},
			refusal: "output [1 3 80 80 85], 616 [1 3 40 40 85], 628 [1 3 20 20 85] looks like yolov5-maps, but " + anchors,
		},
		{
			name: "YOLOv7 without --grid with a layout", labels: 80, layout: "yolov7-maps",
			outputs: []tensor{out("output:logits", 1, 3, 80, 80, 85), out("616:logits", 1, 3, 40, 40, 85), out("628:logits", 1, 3, 20, 20, 85)},
			want:    "yolov7-maps",
		},
		{
			name:    "YOLOv5 for RKNN",
			outputs: []tensor{out("output0", 1, 255, 80, 80), out("286", 1, 255, 40, 40), out("288", 1, 255, 20, 20)},
			refusal: "output0 [1 255 80 80], 286 [1 255 40 40], 288 [1 255 20 20] looks like yolo-maps, but no class names in the " +
				"file: name its 191 classes with --labels FILE",
		},
		{
			name: "YOLOv5 for RKNN with a layout", labels: 80, layout: "yolov5-maps", want: "yolov5-maps",
			outputs: []tensor{out("output0", 1, 255, 80, 80), out("286", 1, 255, 40, 40), out("288", 1, 255, 20, 20)},
		},
		{
			name: "YOLOv5 for Hailo with a layout", labels: 80, layout: "yolov5-maps", want: "yolov5-maps",
			outputs: []tensor{out("conv93:logits", 1, 20, 20, 255), out("conv84:logits", 1, 40, 40, 255), out("conv74:logits", 1, 80, 80, 255)},
		},
		{
			name: "YOLOv8 for RKNN", want: "yolo-maps",
			outputs: []tensor{
				out("318", 1, 64, 80, 80), out("onnx::ReduceSum_326", 1, 80, 80, 80), out("331", 1, 1, 80, 80),
				out("338", 1, 64, 40, 40), out("onnx::ReduceSum_346", 1, 80, 40, 40), out("350", 1, 1, 40, 40),
				out("357", 1, 64, 20, 20), out("onnx::ReduceSum_365", 1, 80, 20, 20), out("369", 1, 1, 20, 20),
			},
		},
		{
			name: "YOLO11 for RKNN, one class", want: "yolo-maps", labels: 1,
			outputs: []tensor{
				out("a", 1, 64, 80, 80), out("b", 1, 1, 80, 80), out("c", 1, 1, 80, 80), out("d", 1, 64, 40, 40), out("e", 1, 1, 40, 40),
				out("f", 1, 1, 40, 40), out("g", 1, 64, 20, 20), out("h", 1, 1, 20, 20), out("i", 1, 1, 20, 20),
			},
		},
		{
			name: "YOLOv8 for RKNN with labels of another", labels: 6,
			outputs: []tensor{
				out("a", 1, 64, 80, 80), out("b", 1, 80, 80, 80), out("c", 1, 64, 40, 40), out("d", 1, 80, 40, 40), out("e", 1, 64, 20, 20),
				out("f", 1, 80, 20, 20),
			},
			refusal: "a [1 64 80 80], c [1 64 40 40], e [1 64 20 20] and 3 more looks like yolo-maps, but it has 80 classes and the " +
				"model has 6 labels (give the labels that belong to it with --labels FILE)",
		},
		{
			name: "YOLOv8 for Hailo", want: "yolo-maps",
			outputs: []tensor{
				out("conv41", 1, 80, 80, 64), out("conv42:logits", 1, 80, 80, 80), out("conv52", 1, 40, 40, 64), out("conv53:logits", 1, 40, 40, 80),
				out("conv62", 1, 20, 20, 64), out("conv63:logits", 1, 20, 20, 80),
			},
		},
		{
			name: "YOLOv8 with boxes and scores of a scale in one map", about: detected, want: "yolo-maps",
			outputs: []tensor{out("a:logits", 1, 144, 80, 80), out("b:logits", 1, 144, 40, 40), out("c:logits", 1, 144, 20, 20)},
		},
		{
			name: "YOLOv6 for RKNN", want: "yolo-maps",
			outputs: []tensor{
				out("a", 1, 4, 80, 80), out("b", 1, 80, 80, 80), out("c", 1, 1, 80, 80), out("d", 1, 4, 40, 40), out("e", 1, 80, 40, 40),
				out("f", 1, 1, 40, 40), out("g", 1, 4, 20, 20), out("h", 1, 80, 20, 20), out("i", 1, 1, 20, 20),
			},
		},
		{
			name: "YOLOX for Hailo",
			outputs: []tensor{
				out("reg1", 1, 80, 80, 4), out("obj1", 1, 80, 80, 1), out("cls1", 1, 80, 80, 80), out("reg2", 1, 40, 40, 4), out("obj2", 1, 40, 40, 1),
				out("cls2", 1, 40, 40, 80), out("reg3", 1, 20, 20, 4), out("obj3", 1, 20, 20, 1), out("cls3", 1, 20, 20, 80),
			},
			refusal: "reg1 [1 80 80 4], reg2 [1 40 40 4], reg3 [1 20 20 4] and 3 more looks like yolo-maps, but the 4 numbers of a " +
				"cell could be centre and sides as in YOLOX (confirm distances with --layout yolo-maps)",
		},
		{
			name: "YOLOv8 segmentation for RKNN",
			outputs: []tensor{
				out("a", 1, 64, 80, 80), out("b", 1, 80, 80, 80), out("c", 1, 1, 80, 80), out("d", 1, 32, 80, 80), out("e", 1, 64, 40, 40),
				out("f", 1, 80, 40, 40), out("g", 1, 1, 40, 40), out("h", 1, 32, 40, 40), out("i", 1, 64, 20, 20), out("j", 1, 80, 20, 20),
				out("k", 1, 1, 20, 20), out("l", 1, 32, 20, 20), out("m", 1, 32, 160, 160),
			},
			refusal: "a [1 64 80 80], e [1 64 40 40], i [1 64 20 20], b [1 80 80 80], f [1 80 40 40], j [1 80 20 20] looks like " +
				"yolo-maps, but there are further outputs (--layout yolo-maps accepts them anyway)",
		},
		{
			name: "YOLOv9 with two heads", outputs: []tensor{out("output0", 1, 84, 8400), out("3377", 1, 84, 8400)}, labels: 80,
			refusal: "output0 [1 84 8400] looks like yolov8, but YOLOv9 trained with two heads gives its training first (--layout " +
				"yolov8 reads the first)",
		},
		{name: "YOLOv6", outputs: []tensor{out("outputs", 1, 8400, 85)}, labels: 80, want: "yolov6"},
		{name: "YOLOv7 with labels", outputs: []tensor{out("output", 1, 25200, 85)}, labels: 80, want: "yolov5"},
		{
			name: "YOLO26 end to end", outputs: []tensor{out("output0", 1, 300, 6)},
			about: ultralytics("detect", 2, "end2end", "True"), want: "end2end",
		},
		{
			name: "nms=True", outputs: []tensor{out("output0", 1, 300, 6)},
			about: ultralytics("detect", 2, "args", "{'batch': 1, 'nms': True}"), want: "end2end",
		},
		{name: "YOLOv10 of before", outputs: []tensor{out("output0", 1, 300, 6)}, about: detected, want: "end2end"},
		{name: "YOLOv10 by trtexec", outputs: []tensor{out("output0", 1, 300, 6)}, refusal: "output0 [1 300 6]" + twoClasses},
		{
			name: "YOLOv10 by trtexec with a layout", outputs: []tensor{out("output0", 1, 300, 6)}, layout: "end2end",
			want: "end2end",
		},

		// Other tasks of Ultralytics.
		{
			name: "segment", outputs: []tensor{out("output0", 1, 116, 8400), out("output1", 1, 32, 160, 160)},
			about: ultralytics("segment", 80), want: "segment",
		},
		{
			name: "segment by trtexec", outputs: []tensor{out("output0", 1, 116, 8400), out("output1", 1, 32, 160, 160)}, want: "segment",
		},
		{
			name: "segment by trtexec with labels", outputs: []tensor{out("output0", 1, 116, 8400), out("output1", 1, 32, 160, 160)},
			labels: 80, want: "segment",
		},
		{
			name: "segment nms=True", outputs: []tensor{out("output0", 1, 300, 38), out("output1", 1, 32, 160, 160)}, labels: 80,
			want: "segment-end2end",
		},
		{
			name: "pose", outputs: []tensor{out("output0", 1, 56, 8400)}, about: ultralytics("pose", 1, "kpt_shape", "[17, 3]"),
			want: "pose",
		},
		{
			name: "pose by trtexec", outputs: []tensor{out("output0", 1, 56, 8400)},
			refusal: "output0 [1 56 8400]" + like8 + nothing + "52 classes" + confirm("yolov8"),
		},
		{
			name: "pose by trtexec with labels", outputs: []tensor{out("output0", 1, 56, 8400)}, labels: 1,
			refusal: "output0 [1 56 8400]" + like8 + "it has 52 classes and the model has 1 label" + otherNames,
		},
		{name: "pose by trtexec with a layout", outputs: []tensor{out("output0", 1, 56, 8400)}, layout: "pose", want: "pose"},
		{
			name: "pose with 51 numbers, of 17 keypoints only", outputs: []tensor{out("output0", 1, 56, 8400)}, about: ultralytics("pose", 1),
			want: "pose",
		},
		{
			name: "pose without the number of keypoints", outputs: []tensor{out("output0", 1, 53, 8400)}, about: ultralytics("pose", 1),
			refusal: "output0 [1 53 8400] looks like pose, but the file does not specify the number of keypoints (confirm it with --layout pose)",
		},
		{
			name: "pose nms=True with what the export says", outputs: []tensor{out("output0", 1, 300, 57)},
			about: ultralytics("pose", 1, "kpt_shape", "[17, 3]", "args", "{'nms': True}"), want: "pose-end2end",
		},
		{
			name: "segment nms=True with what the export says", outputs: []tensor{out("output0", 1, 300, 38), out("output1", 1, 32, 160, 160)},
			about: ultralytics("segment", 80, "args", "{'nms': True}"), want: "segment-end2end",
		},
		{
			name: "oriented boxes nms=True with what the export says", outputs: []tensor{out("output0", 1, 300, 7)},
			about: ultralytics("obb", 15, "args", "{'nms': True}"), want: "obb-end2end",
		},
		{name: "pose nms=True", outputs: []tensor{out("output0", 1, 300, 57)}, refusal: "output0 [1 300 57]" + noHead},
		{
			name: "oriented boxes", outputs: []tensor{out("output0", 1, 20, 8400)}, about: ultralytics("obb", 15),
			want: "obb",
		},
		{
			name: "oriented boxes by trtexec", outputs: []tensor{out("output0", 1, 20, 8400)},
			refusal: "output0 [1 20 8400]" + like8 + nothing + "16 classes" + confirm("yolov8"),
		},
		{
			name: "oriented boxes by trtexec with labels", outputs: []tensor{out("output0", 1, 20, 8400)}, labels: 15,
			refusal: "output0 [1 20 8400]" + like8 + "it has 16 classes and the model has 15 labels" + otherNames,
		},
		{
			name: "oriented boxes nms=True", outputs: []tensor{out("output0", 1, 300, 7)},
			refusal: "output0 [1 300 7]" + noHead,
		},
		{
			name: "classify", side: 224, outputs: []tensor{out("output0", 1, 1000)}, about: ultralytics("classify", 1000),
			want: "classify",
		},

		// Classifiers without a word about themselves, and what looks like them.
		{
			name: "torchvision classifier", side: 224, outputs: []tensor{out("logits", 1, 1000)},
			refusal: "logits [1 1000]" + likeClass + noClasses,
		},
		{
			name: "torchvision classifier with labels", side: 224, outputs: []tensor{out("logits", 1, 1000)}, labels: 1000,
			refusal: engine.UnknownPreprocess("how a classifier's images are cropped and scaled").Error(),
		},
		{
			name: "torchvision classifier that says how it sees", side: 224, outputs: []tensor{out("logits", 1, 1000)}, labels: 1000,
			about: map[string]string{engine.PreprocessProperty: "torchvision"}, want: "classify",
		},
		{
			name: "classifier that keeps its pooled map", side: 224, outputs: []tensor{out("prob", 1, 1000, 1, 1)}, labels: 1000,
			about: map[string]string{"task": "classify"}, want: "classify",
		},
		{
			name: "torchvision classifier with the labels of another", side: 224, outputs: []tensor{out("logits", 1, 1000)},
			labels: 80, refusal: "logits [1 1000]" + likeClass + "it has 1000 classes and the model has 80 labels" + otherNames,
		},
		{
			name: "embedding", side: 112, outputs: []tensor{out("embedding", 1, 512)},
			refusal: "embedding [1 512]" + likeClass + noClasses,
		},
		{
			name: "HRNet with the names of its keypoints", side: 256, outputs: []tensor{out("output", 1, 17, 64, 64)},
			about:   map[string]string{"names": "['nose'" + strings.Repeat(", 'eye'", 16) + "]"},
			refusal: "output [1 17 64 64] looks like semantic, but its labels are keypoints: the heat maps of poses are not decoded",
		},
		{
			name: "HRNet with keypoints of other names", side: 256, outputs: []tensor{out("output", 1, 17, 64, 64)}, labels: 17,
			refusal: "output [1 17 64 64] looks like semantic, but no task in the file: are its 17 maps scores of classes or heat " +
				"maps? (confirm it with --layout semantic)",
		},
		{
			name: "two classifiers", side: 224, outputs: []tensor{out("age", 1, 100), out("gender", 1, 2)}, labels: 100,
			refusal: "age [1 100], gender [1 2]" + noHead,
		},

		// Other detectors with a box in every cell.
		{name: "YOLOX", outputs: []tensor{out("output", 1, 8400, 85)}, labels: 80, want: "yolox"},
		{
			name: "YOLOX nano", side: 416, outputs: []tensor{out("output", 1, 3549, 85)},
			refusal: "output [1 3549 85] could be yolov8-rows of 81 classes, yolox of 80 classes or nanodet of 53 classes (give the " +
				"labels with --labels FILE)",
		},
		{name: "YOLOX nano with a layout", side: 416, outputs: []tensor{out("output", 1, 3549, 85)}, layout: "yolox", want: "yolox"},
		{name: "NanoDet-Plus", side: 416, outputs: []tensor{out("output", 1, 3598, 112)}, labels: 80, want: "nanodet"},
		{
			name: "NanoDet-Plus without labels", side: 416, outputs: []tensor{out("output", 1, 3598, 112)},
			refusal: "output [1 3598 112] looks like nanodet, but " + nothing + "80 classes" + confirmCOCO("nanodet"),
		},
		{
			name: "YOLO-NAS", outputs: []tensor{out("boxes", 1, 8400, 4), out("scores", 1, 8400, 80)}, labels: 80, want: "yolo-nas",
		},
		{
			name: "YOLOv8 with scores apart", outputs: []tensor{out("boxes", 1, 4, 8400), out("scores", 1, 80, 8400)}, labels: 80,
			refusal: "scores [1 80 8400] looks like yolov8, but it is the scores of 80 classes for the boxes boxes [1 4 8400] (join " +
				"the two in the file, boxes first)",
		},
		{
			name: "PP-YOLOE without its suppression", labels: 80,
			inputs:  []tensor{out("image", 1, 3, 640, 640), out("scale_factor", 1, 2)},
			outputs: []tensor{out("tmp_16", 1, 8400, 4), out("concat_14.tmp_0", 1, 80, 8400)},
			about:   map[string]string{engine.PreprocessProperty: "imagenet"}, want: "pp-yoloe",
		},
		{
			name: "PP-YOLOE whose images nothing is said of", outputs: []tensor{out("tmp_16", 1, 8400, 4), out("concat_14.tmp_0", 1, 80, 8400)},
			labels: 80, refusal: engine.UnknownPreprocess("how the images of pp-yoloe are scaled: imagenet for PP-YOLOE, rtdetr for PP-YOLOE+").Error(),
		},
		{
			name: "PP-YOLOE without labels", outputs: []tensor{out("tmp_16", 1, 8400, 4), out("concat_14.tmp_0", 1, 80, 8400)},
			refusal: "tmp_16 [1 8400 4], concat_14.tmp_0 [1 80 8400] looks like pp-yoloe, but " + nothing + "80 classes" + confirmCOCO("pp-yoloe"),
		},
		{
			name: "YOLO-NAS without labels", outputs: []tensor{out("904", 1, 8400, 4), out("913", 1, 8400, 80)},
			refusal: "904 [1 8400 4], 913 [1 8400 80] looks like yolo-nas, but " + nothing + "80 classes" + confirmCOCO("yolo-nas"),
		},
		{
			name: "YOLO-NAS as SuperGradients exports it", inputs: []tensor{out("input:uint8", 1, 3, 640, 640)},
			outputs: []tensor{
				out("graph2_num_predictions:int64", 1, 1), out("graph2_pred_boxes", 1, 1000, 4), out("graph2_pred_scores", 1, 1000),
				out("graph2_pred_classes:int64", 1, 1000),
			},
			labels: 80, want: "nms",
		},
		{
			name: "jetson-inference SSD", side: 300, outputs: []tensor{out("scores", 1, 3000, 91), out("boxes", 1, 3000, 4)},
			labels: 91, want: "ssd",
		},
		{
			name: "UltraFace", side: 640, inputs: []tensor{out("input", 1, 3, 480, 640)},
			outputs: []tensor{out("scores", 1, 17640, 2), out("boxes", 1, 17640, 4)}, labels: 2, want: "ssd",
		},
		{
			name: "jetson-inference SSD trained again", side: 300, outputs: []tensor{out("scores", 1, 3000, 9), out("boxes", 1, 3000, 4)},
			want: "ssd",
		},
		{
			name: "jetson-inference SSD with the labels of another", side: 300,
			outputs: []tensor{out("scores", 1, 3000, 9), out("boxes", 1, 3000, 4)},
			labels:  4,
			refusal: "boxes [1 3000 4], scores [1 3000 9] looks like ssd, but it has 8 classes and the model has 4 labels" + otherNames,
		},

		// Faces and people.
		{name: "SCRFD", inputs: []tensor{out("input.1", 1, 3, -1, -1)}, outputs: faces(0, 12800, 3200, 800), want: "scrfd"},
		{
			name: "SCRFD without keypoints", inputs: []tensor{out("input.1", 1, 3, 640, 640)}, outputs: faces(0, 12800, 3200, 800)[:6],
			want: "scrfd",
		},
		{name: "SCRFD with a batch", outputs: faces(1, 12800, 3200, 800), labels: 1, want: "scrfd"},
		{
			name: "SCRFD with the labels of another", outputs: faces(1, 12800, 3200, 800), labels: 80,
			refusal: "448 [1 12800 1], 471 [1 3200 1], 494 [1 800 1] and 6 more looks like scrfd, but it has 1 class and the model " +
				"has 80 labels (give the labels that belong to it with --labels FILE)",
		},
		{
			name: "YuNet", want: "yunet",
			outputs: []tensor{
				out("cls_8", 1, 6400, 1), out("cls_16", 1, 1600, 1), out("cls_32", 1, 400, 1), out("obj_8", 1, 6400, 1), out("obj_16", 1, 1600, 1),
				out("obj_32", 1, 400, 1), out("bbox_8", 1, 6400, 4), out("bbox_16", 1, 1600, 4), out("bbox_32", 1, 400, 4), out("kps_8", 1, 6400, 10),
				out("kps_16", 1, 1600, 10), out("kps_32", 1, 400, 10),
			},
		},
		{
			name: "MoveNet", inputs: []tensor{out("input:int32", 1, 192, 192, 3)}, outputs: []tensor{out("output_0", 1, 1, 17, 3)}, want: "movenet",
		},
		{
			name: "MoveNet, quantized", inputs: []tensor{out("serving_default_input_0:uint8", 1, 192, 192, 3)},
			outputs: []tensor{out("StatefulPartitionedCall", 1, 1, 17, 3)}, want: "movenet",
		},
		{
			name: "MoveNet MultiPose", inputs: []tensor{out("input:int32", 1, -1, -1, 3)}, outputs: []tensor{out("output_0", 1, 6, 56)},
			want: "movenet-multipose",
		},
		{
			name: "MoveNet with floats", inputs: []tensor{out("input", 1, 192, 192, 3)}, outputs: []tensor{out("Identity", 1, 1, 17, 3)},
			want: "movenet",
		},

		// Heat maps of centres.
		{
			name: "CenterNet", side: 512, want: "centernet",
			outputs: []tensor{out("hm:logits", 1, 80, 128, 128), out("wh", 1, 2, 128, 128), out("reg", 1, 2, 128, 128)},
		},
		{
			name: "CenterNet without names", side: 512, outputs: []tensor{out("a", 1, 80, 128, 128), out("b", 1, 2, 128, 128), out("c", 1, 2, 128,
				128)},
			refusal: "a [1 80 128 128], b [1 2 128 128], c [1 2 128 128] looks like centernet, but the outputs' names do not specify " +
				"which of two maps has the sides (confirm that the second has with --layout centernet)",
		},
		{
			name: "CenterNet without names with a layout", side: 512, layout: "centernet", want: "centernet",
			outputs: []tensor{out("a", 1, 80, 128, 128), out("b", 1, 2, 128, 128), out("c", 1, 2, 128, 128)},
		},

		// PaddleDetection.
		{
			name: "Paddle after its suppression", inputs: paddle, about: map[string]string{engine.PreprocessProperty: "imagenet"},
			want:    "paddle-nms",
			outputs: []tensor{out("multiclass_nms3_0.tmp_0", -1, 6), out("multiclass_nms3_0.tmp_2:int32", 1)},
		},
		{
			name: "Paddle whose images nothing is said of", inputs: paddle,
			outputs: []tensor{out("multiclass_nms3_0.tmp_0", -1, 6), out("multiclass_nms3_0.tmp_2:int32", 1)}, refusal: engine.UnknownPreprocess("how the images of paddle-nms are scaled: imagenet for PicoDet and PP-YOLOE, rtdetr for PP-YOLOE+ and RT-DETR").Error(),
		},

		// Transformers.
		{
			name: "RT-DETR of Ultralytics", outputs: []tensor{out("output0", 1, 300, 84)}, about: detected, want: "ultralytics-rtdetr",
		},
		{
			name: "RT-DETR of Ultralytics, two classes", outputs: []tensor{out("output0", 1, 300, 6)},
			about: ultralytics("detect", 2), refusal: "output0 [1 300 6]" + twoClasses,
		},
		{
			name: "RT-DETR of Ultralytics, two classes and its name", outputs: []tensor{out("output0", 1, 300, 6)},
			about: ultralytics("detect", 2, "description", "Ultralytics rtdetr-l model"),
			refusal: "output0 [1 300 6] looks like ultralytics-rtdetr, but it could be ultralytics-rtdetr-end2end as well (select one with " +
				"--layout)",
		},
		{
			name: "RT-DETR of Ultralytics with rows of the best", outputs: []tensor{out("output0", -1, 300, 6)},
			about: ultralytics("detect", 80, "head", "RTDETRDecoder"), want: "ultralytics-rtdetr-end2end",
		},
		{
			name: "RT-DETR, D-FINE, DEIM", inputs: sizes,
			outputs: []tensor{out("labels:int64", -1, 300), out("boxes", -1, 300, 4), out("scores", -1, 300)}, want: "rtdetr",
		},
		{
			name: "RF-DETR", side: 560, outputs: []tensor{out("dets", 1, 300, 4), out("labels:logits", 1, 300, 91)}, want: "rfdetr",
		},
		{
			name: "RF-DETR of six classes", side: 560, outputs: []tensor{out("dets", 1, 300, 4), out("labels:logits", 1, 300, 8)}, labels: 6,
			want: "rfdetr",
		},
		{
			name: "RF-DETR trained again", side: 384, outputs: []tensor{out("dets", 1, 300, 4), out("labels:logits", 1, 300, 7)},
			labels: 7, want: "rfdetr",
		},
		{
			name: "RF-DETR segmentation", side: 432,
			outputs: []tensor{out("dets", 1, 200, 4), out("labels:logits", 1, 200, 91), out("masks", 1, 200, 108, 108)}, labels: 91,
			want: "rfdetr-segment",
		},
		{
			name: "RF-DETR segmentation trained again", side: 312,
			outputs: []tensor{out("dets", 1, 100, 4), out("labels:logits", 1, 100, 7), out("masks", 1, 100, 78, 78)}, labels: 6,
			refusal: "dets [1 100 4], labels [1 100 7] and 1 more looks like rfdetr-segment, but it has 7 scores and 6 labels: a " +
				"label for none is missing, first in early versions, else last (add it to --labels FILE)",
		},
		{
			name: "RF-DETR keypoints", side: 576,
			outputs: []tensor{out("dets", 1, 100, 4), out("labels", 1, 100, 91), out("keypoints", 1, 100, 17, 8)}, labels: 91,
			refusal: "dets [1 100 4], labels [1 100 91] looks like rfdetr, but there are further outputs (--layout rfdetr reads the " +
				"boxes anyway)",
		},
		{
			name: "DETR of Hugging Face", side: 800, outputs: []tensor{out("logits", 1, 100, 92), out("pred_boxes", 1, 100, 4)},
			refusal: "pred_boxes [1 100 4], logits [1 100 92] looks like detr, but its scores could be those of 91 classes and of no " +
				"object, or of 92 classes (give the labels with --labels FILE)",
		},
		{
			name: "DETR of Hugging Face with labels", side: 800, outputs: []tensor{out("logits", 1, 100, 92), out("pred_boxes", 1, 100, 4)},
			labels: 91, want: "detr",
		},
		{
			name: "DETR of Hugging Face with the 80 labels of COCO", side: 800,
			outputs: []tensor{out("logits", 1, 100, 92), out("pred_boxes", 1, 100, 4)}, labels: 80, want: "detr",
		},
		{
			name: "DETR boxes alone", side: 800, outputs: []tensor{out("pred_boxes", 1, 300, 4)},
			refusal: "pred_boxes [1 300 4]" + noHead,
		},
		{
			name: "RT-DETRv2 of Hugging Face", outputs: []tensor{out("logits:logits", 1, 300, 80), out("pred_boxes", 1, 300, 4)},
			labels:  80,
			refusal: engine.UnknownPreprocess("how the images of detr-sigmoid are scaled, which its networks differ in").Error(),
		},
		{
			name:    "RT-DETRv2 of Hugging Face that says how it sees",
			outputs: []tensor{out("logits:logits", 1, 300, 80), out("pred_boxes", 1, 300, 4)},
			labels:  80, about: map[string]string{engine.PreprocessProperty: "rtdetr"}, want: "detr-sigmoid",
		},

		// Lists that are suppressed already.
		{
			name:    "EfficientNMS",
			outputs: []tensor{out("num_dets:int32", 1, 1), out("det_boxes", 1, 100, 4), out("det_scores", 1, 100), out("det_classes:int32", 1, 100)},
			labels:  80, want: "nms",
		},
		{
			name: "EfficientNMS under TensorFlow's names",
			outputs: []tensor{
				out("num_detections:int32", 1, 1), out("detection_boxes", 1, 100, 4), out("detection_scores", 1, 100),
				out("detection_classes:int32", 1, 100),
			},
			refusal: "detection_boxes [1 100 4], detection_scores [1 100], detection_classes int32 [1 100], num_detections int32 [1 " +
				"1] looks like nms, but it could also be tf-detection (select one with --layout)",
		},
		{
			name: "BatchedNMS",
			outputs: []tensor{
				out("num_detections:int32", 1, 1), out("nmsed_boxes", 1, 100, 4), out("nmsed_scores", 1, 100), out("nmsed_classes", 1, 100),
			},
			labels: 80, want: "nms",
		},
		{
			name: "BatchedNMS of TAO",
			outputs: []tensor{
				out("BatchedNMS:int32", 1, 1), out("BatchedNMS_1", 1, 200, 4), out("BatchedNMS_2", 1, 200), out("BatchedNMS_3", 1, 200),
			},
			want: "nms",
		},
		{
			name: "torchvision detection", inputs: []tensor{out("images", 1, 3, 320, 320)},
			outputs: []tensor{out("boxes", -1, 4), out("labels:int64", -1), out("scores", -1)}, labels: 91, want: "torchvision",
		},
		{
			name: "torchvision detection without names", inputs: []tensor{out("images", 1, 3, 320, 320)},
			outputs: []tensor{out("2770", -1, 4), out("2820:int64", -1), out("2821", -1)}, want: "torchvision",
		},
		{
			name: "torchvision instance segmentation", inputs: []tensor{out("images", 1, 3, 320, 320)},
			outputs: []tensor{out("boxes", -1, 4), out("labels:int64", -1), out("scores", -1), out("masks", -1, 1, 28, 28)}, labels: 91,
			refusal: "boxes [-1 4], scores [-1], labels int64 [-1] looks like torchvision, but there are further outputs (--layout " +
				"torchvision reads the boxes anyway)",
		},
		{
			name: "TensorFlow object detection", inputs: []tensor{out("input_tensor:uint8", 1, -1, -1, 3)},
			outputs: []tensor{
				out("num_detections", 1), out("detection_boxes", 1, 100, 4), out("detection_scores", 1, 100), out("detection_classes", 1, 100),
			},
			want: "tf-detection",
		},
		{
			name: "TensorFlow Lite's detection", side: 300, inputs: []tensor{out("normalized_input_image_tensor:uint8", 1, 300, 300, 3)},
			outputs: []tensor{
				out("TFLite_Detection_PostProcess", 1, 10, 4), out("TFLite_Detection_PostProcess:1", 1, 10),
				out("TFLite_Detection_PostProcess:2", 1, 10), out("TFLite_Detection_PostProcess:3", 1),
			},
			want: "tf-detection",
		},

		// Maps.
		{
			name: "semantic segmentation of Ultralytics", outputs: []tensor{out("output0:uint8", 1, 640, 640)},
			about: ultralytics("semantic", 19), want: "semantic",
		},
		{
			name: "semantic segmentation of Ultralytics with scores", outputs: []tensor{out("output0", 1, 19, 640, 640)},
			about: ultralytics("semantic", 19), want: "semantic",
		},
		{
			name: "DeepLab of torchvision", side: 520, outputs: []tensor{out("out", 1, 21, 520, 520), out("aux", 1, 21, 520, 520)},
			want: "semantic",
		},
		{
			name: "LR-ASPP of torchvision with labels", side: 520, outputs: []tensor{out("output", 1, 21, 520, 520)}, labels: 21, want: "semantic",
		},
		{
			name: "labels without the background", side: 520, outputs: []tensor{out("output", 1, 21, 520, 520)}, labels: 20, want: "semantic",
		},
		{
			name: "SegFormer of Hugging Face", side: 512, outputs: []tensor{out("logits", 1, 150, 128, 128)}, want: "semantic",
		},
		{
			name: "segmentation that ends in argmax", side: 513, outputs: []tensor{out("SemanticPredictions:int64", 1, 513, 513)}, want: "semantic",
		},
		{
			name: "segmentation that ends in argmax and keeps its channel", side: 512, outputs: []tensor{out("classes:int32", 1, 1, 512, 512)},
			want: "semantic",
		},
		{
			name: "maps that nothing is said of", side: 512, outputs: []tensor{out("out", 1, 21, 128, 128)},
			refusal: "out [1 21 128 128] looks like semantic, but no task in the file: are its 21 maps scores of classes or heat " +
				"maps? (confirm it with --layout semantic)",
		},
		{
			name: "maps that are said to be of classes", side: 512, outputs: []tensor{out("out", 1, 21, 128, 128)}, layout: "semantic",
			want: "semantic",
		},
		{
			name: "depth of Ultralytics", outputs: []tensor{out("output0", 1, 1, 640, 640)}, about: ultralytics("depth", 1), want: "depth",
		},
		{
			name: "depth", side: 384, outputs: []tensor{out("depth", 1, 1, 384, 384)}, about: map[string]string{"preprocess": "imagenet"},
			want: "depth",
		},
		{
			name: "depth without channels", side: 518, outputs: []tensor{out("predicted_depth", 1, 518, 518)},
			about: map[string]string{"preprocess": "imagenet"}, want: "depth",
		},
		{
			name: "depth whose images nothing is said of", side: 518, outputs: []tensor{out("predicted_depth", 1, 518, 518)},
			refusal: engine.UnknownPreprocess("how the images of depth are scaled, which its networks differ in").Error(),
		},
		{
			name: "a map of numbers", side: 384, outputs: []tensor{out("output", 1, 1, 384, 384)},
			about:   map[string]string{"preprocess": "imagenet"},
			refusal: "output [1 1 384 384] looks like depth, but no task in the file: are its numbers depths? (confirm it with --layout depth)",
		},
		{
			name: "a map that is said to be depth", side: 384, outputs: []tensor{out("output", 1, 1, 384, 384)}, layout: "depth",
			about: map[string]string{"preprocess": "imagenet"}, want: "depth",
		},
		{
			name: "a line of characters", side: 320, outputs: []tensor{out("characters", 1, 40, 37)}, labels: 36, layout: "ctc",
			about: map[string]string{"preprocess": "keras"}, want: "ctc",
		},
		{
			name: "a line of characters with other labels", side: 320, outputs: []tensor{out("characters", 1, 40, 37)}, labels: 30,
			layout: "ctc-blank-last", about: map[string]string{"preprocess": "keras"},
			refusal: "characters [1 40 37] read as ctc-blank-last has 37 classes but the model has 30 labels (give the labels that " +
				"belong to it with --labels)",
		},
		{
			name: "a vector that is said to be one", side: 256, outputs: []tensor{out("fc_pred", 1, 256)}, layout: "embedding",
			about: map[string]string{"preprocess": "torchvision"}, want: "embedding",
		},
		{
			name: "a vector by its file", side: 256, outputs: []tensor{out("output", 1, 512)},
			about: map[string]string{"task": "embed", "preprocess": "torchvision"}, want: "embedding",
		},
		{
			name: "a vector whose images nothing is said of", side: 256, outputs: []tensor{out("output", 1, 512)}, layout: "embedding",
			refusal: engine.UnknownPreprocess("how the images of a network that embeds are scaled").Error(),
		},
	}
}

// Every family that people bring is decoded as what it is, or refused in one line that names its outputs and what would settle it. None is
// taken for another.
func TestCorpus(t *testing.T) {
	for _, c := range corpus() {
		t.Run(c.name, func(t *testing.T) {
			if c.inputs == nil {
				side := max(c.side, 640)
				if c.side > 0 {
					side = c.side
				}
				c.inputs = []tensor{out("images", 1, 3, side, side)}
			}
			o := Options{Model: "network.onnx", Backend: "onnxruntime=cpu", Decoding: Decoding{Layout: c.layout}, Log: slog.New(slog.DiscardHandler)}
			o.Bytes = exported{c.inputs, c.outputs, c.about}.bytes(t)
			o.Threads, o.Slots = 1, 1
			if c.labels > 0 {
				o.LabelsFile = filepath.Join(t.TempDir(), "labels.txt")
				names := strings.Repeat("part\n", c.labels)
				if c.labels == 80 {
					names = engine.COCOLabels()
				}
				require.NoError(t, os.WriteFile(o.LabelsFile, []byte(names), 0o600))
			}
			d, err := Inspect(t.Context(), o)
			require.NoError(t, err, "a network that is not understood is described all the same")
			assert.Len(t, d.Outputs, len(c.outputs))
			assert.Equal(t, c.refusal, d.Problem)
			n, err := Open(t.Context(), o)
			if c.refusal != "" {
				require.EqualError(t, err, "model network.onnx: "+c.refusal)
				require.ErrorIs(t, err, head.ErrLayout)
				require.Nil(t, d.Head)
				return
			}
			require.NoError(t, err)
			defer n.Close()
			assert.Equal(t, c.want, n.Model().Recognised.Layout)
			require.NoError(t, o.Load())
			alone, err := o.Recognise()
			require.NoError(t, err)
			assert.Equal(t, n.Model().Recognised, alone, "the file alone says it as well")
			require.NotNil(t, d.Head)
			assert.Equal(t, n.Model().Recognised, *d.Head)
			for range ContradictionImages + 2 { // nothing in it is no evidence against it
				seen, err := Run(n, engine.Image{Data: make([]byte, 64), Width: 8, Height: 8, Stride: 8, Format: engine.GRAY8})
				require.NoError(t, err)
				require.NoError(t, seen[0].Err)
				if c.want != "classify" {
					require.Empty(t, seen[0].Detections)
				}
				if c.side > 640 {
					break
				}
			}
			require.Nil(t, n.evidence.contradiction)
		})
	}
}

func TestDescription(t *testing.T) {
	o := quiet(Options{Backend: "onnxruntime=cpu"})
	d, err := Inspect(t.Context(), o)
	require.NoError(t, err)
	assert.Empty(t, d.Problem)
	assert.Equal(t, []Port{{"images", "float32", []int64{-1, 3, 416, 416}}}, d.Inputs)
	assert.Equal(t, []Port{{"output0", "float32", []int64{-1, 10, 3549}}}, d.Outputs)
	text := d.String()
	for _, line := range []string{
		"model         demo in fp32, batches of up to 1\n",
		"because       onnxruntime on the CPU was asked for\n",
		"input         images float32 [-1 3 416 416]\n",
		"image         416x416: letterbox, bilinear, pad 114, rgb, 0..1, nchw\n",
		"output        output0 float32 [-1 10 3549]\n",
		"head          yolov8, [B,4+nc,N]: YOLOv8, v9, 11, 12 and others of Ultralytics, YOLOv5u\n",
		"evidence      output0 [-1 10 3549]: 3549 anchors at strides 8, 16, 32 of 416x416; 6 classes\n",
		"gives         box, class and score of each object\n",
		"labels        6: bolt, nut, washer, gear, bearing, spring\n",
	} {
		assert.Contains(t, text, line)
	}
	n, err := Open(t.Context(), o)
	require.NoError(t, err)
	defer n.Close()
	assert.Equal(t, d, Describe(n.Model()))

	o.Bytes = exported{[]tensor{out("x", 1, 3, 64, 64)}, []tensor{out("y", 1, 512)}, nil}.bytes(t)
	o.Model = "unknown.onnx"
	d, err = Inspect(t.Context(), o)
	require.NoError(t, err)
	assert.Nil(t, d.Head)
	text = d.String()
	assert.Contains(t, text, "problem       y [1 512] looks like classify, but no class names in the file: are its numbers classes? "+
		"(name them with --labels FILE)\n")
	assert.Contains(t, text, "labels        none: classes are numbers (give their names with --labels FILE)\n")

	_, err = Inspect(t.Context(), Options{Model: "/nowhere/m.onnx"})
	require.EqualError(t, err, "model /nowhere/m.onnx: no such file (name an ONNX file, or demo for the embedded model)")
}

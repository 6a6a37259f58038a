package head

import (
	"fmt"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
)

// LayoutUltralyticsRTDETR is [B,Q,4+nc]: a row for each query with the centre's x and y, width and height as shares of the input, and the
// scores of the classes, after their sigmoid.
const LayoutUltralyticsRTDETR Layout = "ultralytics-rtdetr"

type ultralyticsRTDETR struct{ scoredLabels }

func (ultralyticsRTDETR) describe() Description {
	return Description{
		Layout: LayoutUltralyticsRTDETR, Task: engine.Detect, Form: "[B,Q,4+nc]", Networks: "RT-DETR of Ultralytics", Gives: boxesWithClasses,
		Preset: "ultralytics-rtdetr", NMSFree: true,
	}
}

func (ultralyticsRTDETR) findOutputs(n *network) [][]int { return n.floats() }

func (h ultralyticsRTDETR) measure(shapes [][]int64) (sizes, error) {
	shape := shapes[0]
	if len(shape) != 3 || shape[2] < 5 && shape[2] != -1 || shape[1] > maxRows {
		return sizes{}, mismatch(h, shapes)
	}
	return sizes{boxes: shape[1], classes: int(max(shape[2]-4, 0))}, nil
}

func (ultralyticsRTDETR) recognise(n *network, m *match) (evidence, doubt string) {
	named := n.fileNamesRTDETR()
	switch {
	case len(n.outputs) > 1 || n.labels == 0 || m.classes != n.labels:
		return "", ""
	case m.classes == 2 && n.endsInClass(m):
		return "", ""
	case named && m.classes == 2 && n.metadata.LastColumn == "":
		return "", "it could be " + string(LayoutUltralyticsRTDETREnd2End) + " as well (select one with --layout)"
	case named:
		return n.rtdetrEvidence() + "; " + plural(n.labels, "class"), ""
	case m.classes == 2:
		return "", "" // end2end returns the doubt
	case m.boxes < 0:
		return "", ""
	}
	return fmt.Sprintf("a short list of rows of 4 numbers and the scores of %s", plural(n.labels, "class")), ""
}

func (ultralyticsRTDETR) boxMap(m *match) (engine.BoxMap, bool) {
	output, row := m.outputs[0], 4+int64(m.classes)
	return m.inShares(engine.BoxMap{
		Boxes:  engine.Numbers{Output: output, Step: row, Next: 1},
		Scores: engine.Numbers{Output: output, Offset: 4, Step: row, Next: 1},
		Count:  int(m.boxes), Classes: m.classes,
	}), m.boxes > 0 && m.classes > 0
}

func (ultralyticsRTDETR) newDecoder(s *settings) decoder { return newDenseDecoder(s) }

// fileNamesRTDETR reports whether the file specifies Ultralytics' RT-DETR: in words, or by boxes that are shares of the input.
func (n *network) fileNamesRTDETR() bool {
	return n.metadata.Preprocess.Preset == "ultralytics-rtdetr" || n.metadata.BoxShares
}

func (n *network) rtdetrEvidence() string {
	if n.metadata.BoxShares {
		return "the graph gives boxes as shares of the input, as RT-DETR does"
	}
	return "the file specifies RT-DETR"
}

// LayoutUltralyticsRTDETREnd2End is [B,Q,6]: a row for each of the best queries with the centre's x and y, width and height as shares of
// the input, score and class.
const LayoutUltralyticsRTDETREnd2End Layout = "ultralytics-rtdetr-end2end"

type ultralyticsRTDETREnd2End struct{ endToEnd }

func (ultralyticsRTDETREnd2End) describe() Description {
	return Description{
		Layout: LayoutUltralyticsRTDETREnd2End, Task: engine.Detect, Form: "[B,Q,6]", Networks: "RT-DETR as Ultralytics exports it lately",
		Gives: boxesWithClasses, Preset: "ultralytics-rtdetr", NMSFree: true,
	}
}

func (ultralyticsRTDETREnd2End) recognise(n *network, m *match) (evidence, doubt string) {
	if !n.fileNamesRTDETR() || len(n.outputs) > 1 || n.outputs[m.outputs[0]].Shape[2] < 0 {
		return "", ""
	}
	if n.endsInClass(m) {
		return n.rtdetrEvidence() + ", and ends rows with score and class", ""
	}
	if n.labels == 2 || n.metadata.LastColumn == engine.ScoreColumn {
		return "", "" // with two classes ultralytics-rtdetr returns the doubt
	}
	return n.rtdetrEvidence() + ", with rows of 6 numbers, which the scores of " + plural(n.labels, "class") +
		" leave no room for", ""
}

func (ultralyticsRTDETREnd2End) newDecoder(s *settings) decoder {
	return &queryListDecoder{newBoxes(s)}
}

// queryListDecoder decodes rows of the centre and the sides as shares of the input, score and class.
type queryListDecoder struct{ boxes }

func (d *queryListDecoder) decode(in *input, dst []postprocess.Detection) ([]postprocess.Detection, error) {
	const fields = engine.CandidateFields
	rows, scaleX, scaleY := in.tensors[0].data, float32(d.match.width), float32(d.match.height)
	d.beginList(len(rows) / fields)
	for i := range len(rows) / fields {
		row := [fields]float32(rows[i*fields:])
		x, y := row[0]*scaleX, row[1]*scaleY
		width, height := row[2]*scaleX, row[3]*scaleY
		row[0], row[1] = x-width/2, y-height/2
		row[2], row[3] = x+width/2, y+height/2
		d.take(in, &row, int32(i))
	}
	return d.finish(in, dst), nil
}

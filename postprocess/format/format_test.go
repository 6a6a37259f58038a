package format

import (
	"bytes"
	"encoding/json"
	"image"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/postprocess"
)

func square(x1, y1, x2, y2 float32) postprocess.Detection {
	return postprocess.Detection{Box: postprocess.Box{X1: x1, Y1: y1, X2: x2, Y2: y2}, Score: 0.75, Class: 11}
}

func withMask() postprocess.Detection {
	f := square(10, 20, 30, 40)
	logits := []float32{1, 1, 1, 1}
	f.Detail = &postprocess.Detail{Mask: &postprocess.Mask{
		Bounds: image.Rect(10, 20, 30, 40), Width: 2, Height: 2, Logits: logits, X: -0.5, Y: -1, StepX: 0.05, StepY: 0.05,
	}}
	return f
}

func TestCOCOResults(t *testing.T) {
	var out bytes.Buffer
	labels := make([]string, 80)
	labels[0], labels[79] = "person", "toothbrush"
	writer := COCO{Writer: &out, Category: CategoryIDs(labels)}
	require.NoError(t, writer.Write(&Image{Path: "/val/000000000139.jpg", Width: 100, Height: 50, Detections: []postprocess.Detection{
		square(1, 2, 4, 8), withMask(),
	}}))
	require.NoError(t, writer.Write(&Image{Path: "empty.jpg"}))
	require.NoError(t, writer.Write(&Image{Path: "belt.mp4", Video: true, Frame: 3, Detections: []postprocess.Detection{square(0, 0, 1, 1)}}))
	require.NoError(t, writer.Close())
	var list []map[string]any
	require.NoError(t, json.Unmarshal(out.Bytes(), &list))
	require.Len(t, list, 3)
	require.EqualValues(t, 139, list[0]["image_id"])
	require.EqualValues(t, 13, list[0]["category_id"], "class 11 is a stop sign, which COCO calls 13")
	require.Equal(t, []any{1.0, 2.0, 3.0, 6.0}, list[0]["bbox"])
	require.Equal(t, []any{50.0, 100.0}, list[1]["segmentation"].(map[string]any)["size"])
	require.Equal(t, "belt_3", list[2]["image_id"])

	out.Reset()
	require.NoError(t, (&COCO{Writer: &out}).Close())
	require.JSONEq(t, "[]", out.String())
	last := CategoryIDs(labels)
	require.EqualValues(t, 90, last(79))
	require.EqualValues(t, 1, last(0))
	require.EqualValues(t, 79, CategoryIDs(labels[1:])(79), "of other labels it is the class")
}

func TestLabelFiles(t *testing.T) {
	plain := square(10, 20, 30, 40)
	points := plain
	points.Detail = &postprocess.Detail{Keypoints: []postprocess.Keypoint{{X: 50, Y: 25, Score: 0.5}, {X: 0, Y: 50, Score: 0.125}}}
	turned := plain
	turned.Detail = &postprocess.Detail{Oriented: &postprocess.OrientedBox{X: 50, Y: 25, Width: 20, Height: 10}}
	classified := square(0, 0, 100, 50)
	classified.Detail = &postprocess.Detail{Probabilities: []float32{0.25, 0.75}}
	for name, c := range map[string]struct {
		detection postprocess.Detection
		scores    bool
		want      string
	}{
		"box":        {plain, false, "11 0.2 0.6 0.2 0.4"},
		"with score": {plain, true, "11 0.2 0.6 0.2 0.4 0.75"},
		"keypoints":  {points, true, "11 0.2 0.6 0.2 0.4 0.5 0.5 0.5 0 1 0.125 0.75"},
		"turned":     {turned, false, "11 0.6 0.6 0.6 0.4 0.4 0.4 0.4 0.6"},
		"classified": {classified, true, "0.75 class11"},
	} {
		t.Run(name, func(t *testing.T) {
			y := YOLO{Scores: c.scores}
			p := Image{Path: "a.jpg", Width: 100, Height: 50, Detections: []postprocess.Detection{c.detection}}
			require.Equal(t, c.want+"\n", strings.ReplaceAll(string(y.Append(nil, &p, nil)), "class 11", "class11"))
		})
	}
	y := YOLO{}
	p := Image{Path: "a/belt.mp4", Video: true, Frame: 4, Width: 100, Height: 50, Detections: []postprocess.Detection{withMask()}}
	require.Equal(t, "belt_5.txt", y.Name(&p))
	fields := strings.Fields(string(y.Append(nil, &p, nil)))
	require.Equal(t, "11", fields[0])
	require.Greater(t, len(fields), 6)
	require.Zero(t, (len(fields)-1)%2, "an outline of points")
}

func TestRows(t *testing.T) {
	var out bytes.Buffer
	c := CSV{Writer: &out, Labels: []string{"nut, hex"}}
	f := square(1, 2.5, 3, 4)
	f.Class = 0
	require.NoError(t, c.Write(&Image{Path: "a b.jpg", Width: 10, Height: 20, Detections: []postprocess.Detection{f}}))
	require.NoError(t, c.Close())
	require.Equal(t, "file,frame,width,height,class,label,score,x1,y1,x2,y2\na b.jpg,0,10,20,0,\"nut, hex\",0.75,1,2.5,3,4\n", out.String())
	out.Reset()
	require.NoError(t, (&CSV{Writer: &out}).Close())
	require.Equal(t, strings.Join(columns(), ",")+"\n", out.String())
}

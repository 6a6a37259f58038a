package payload

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDetailsOfADetection(t *testing.T) {
	for name, c := range map[string]struct {
		detail Detail
		want   string
	}{
		"none":      {Detail{}, ``},
		"keypoints": {Detail{Keypoints: [][3]float64{{1.25, 2, 0.5}, {0, 0, 0}}}, `,"keypoints":[[1.25,2,0.5],[0,0,0]]`},
		"turned": {
			Detail{Corners: [][2]float64{{1, 2}, {3, 4}, {5, 6}, {7, 8.1234}}, Angle: -0.25},
			`,"angle":-0.25,"corners":[[1,2],[3,4],[5,6],[7,8.123]]`,
		},
		"run lengths": {
			Detail{Mask: Mask{Counts: []byte(`5\2o0`), Width: 640, Height: 480}}, `,"mask":{"size":[480,640],"counts":"5\\2o0"}`,
		},
		"outlines": {
			Detail{Mask: Mask{Polygons: [][][2]float64{{{1, 2}, {3, 4}, {5, 6.5}}, {{7, 8}, {9, 1}, {2, 3}}}}},
			`,"mask":{"polygons":[[1,2,3,4,5,6.5],[7,8,9,1,2,3]]}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, string(c.detail.AppendJSON(nil)))
			d := Detection{Label: "person", Detail: c.detail}
			text := d.appendJSON(nil)
			require.True(t, json.Valid(text), "%s", text)
			require.Zero(t, testing.AllocsPerRun(20, func() { text = d.appendJSON(text[:0]) }))
		})
	}
}

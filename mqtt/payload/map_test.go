package payload

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMaps(t *testing.T) {
	road := []Share{{Label: "road", Class: 0, Share: .41237}, {Label: `a "car"`, Class: 13, Share: .001}}
	for name, c := range map[string]struct {
		m    Map
		want string
	}{
		"nothing": {Map{}, `,"semantic":{"classes":[]}`},
		"shares":  {Map{Whole: Region{Shares: road}}, `,"semantic":{"classes":[{"label":"road","class":0,"share":0.412},{"label":"a \"car\"","class":13,"share":0.001}]}`},
		"zones": {
			Map{Whole: Region{Shares: road[:1]}, Zones: []Region{{Name: "door", Shares: road[1:]}, {Name: "yard"}}},
			`,"semantic":{"classes":[{"label":"road","class":0,"share":0.412}],` +
				`"zones":{"door":{"classes":[{"label":"a \"car\"","class":13,"share":0.001}]},"yard":{"classes":[]}}}`,
		},
		"grid": {
			Map{Grid: Grid{Width: 4, Height: 3, Classes: []Area{{Label: "road", Class: 0, Counts: []byte(`5\2`)}}}},
			`,"semantic":{"classes":[],"grid":{"size":[3,4],"classes":[{"label":"road","class":0,"counts":"5\\2"}]}}`,
		},
		"depth": {
			Map{Unit: "m", Whole: Region{Known: true, Low: .5, Median: 2, High: 9.1234}, Zones: []Region{{Name: "door"}}},
			`,"depth":{"unit":"m","min":0.5,"median":2,"max":9.123,"zones":{"door":{"min":null,"median":null,"max":null}}}`,
		},
		"levels": {
			Map{Unit: "relative", Grid: Grid{Width: 3, Height: 1, Low: 1, High: 2, Levels: []byte{0, 1, 255}}},
			`,"depth":{"unit":"relative","min":null,"median":null,"max":null,"grid":{"size":[1,3],"low":1,"high":2,"levels":"AAH/"}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, string(c.m.AppendField(nil)))
			d := Detections{Camera: "gate", Time: time.Unix(1_800_000_000, 0), Width: 640, Height: 480, Map: &c.m}
			text := d.AppendJSON(nil, "line-3")
			require.True(t, json.Valid(text), "%s", text)
			require.Zero(t, testing.AllocsPerRun(20, func() { text = d.AppendJSON(text[:0], "line-3") }))
			inner, err := json.Marshal(&c.m)
			require.NoError(t, err)
			name := map[bool]string{true: "depth", false: "semantic"}[c.m.Unit != ""]
			require.JSONEq(t, `{"a":0`+c.want+`}`, `{"a":0,"`+name+`":`+string(inner)+`}`)
		})
	}
}

package config

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/postprocess/zone"
)

func TestSetAnalyticsKeepsTheRestOfTheFile(t *testing.T) {
	const before = "# the gate\ndevice: gate\ncameras:\n  # looks at the yard\n  - name: a\n    uri: demo\n  - name: b\n    uri: demo\n    interval: 2\n    analytics:\n      lines:\n        - name: old\n          from: {x: 0, y: 0}\n          to: {x: 1, y: 1}\n"
	path := filepath.Join(t.TempDir(), "edge-infer.yaml")
	require.NoError(t, os.WriteFile(path, []byte(before), 0o640))
	zones := zone.Config{Zones: []zone.Zone{{Name: "yard", Points: []zone.Point{{X: 0.1, Y: 0.1}, {X: 0.9, Y: 0.1}, {X: 0.5, Y: 0.9}}}}}
	for _, camera := range []string{"a", "b"} {
		require.NoError(t, SetAnalytics(path, camera, zones))
	}
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(text), "# the gate")
	require.Contains(t, string(text), "# looks at the yard")
	c, err := (&Sources{File: path}).Load()
	require.NoError(t, err)
	require.Len(t, c.Cameras, 2)
	for i := range c.Cameras {
		require.Equal(t, "yard", c.Cameras[i].Analytics.Zones[0].Name)
		require.Equal(t, zones.Zones[0].Points, c.Cameras[i].Analytics.Zones[0].Points)
	}
	require.Empty(t, c.Cameras[1].Analytics.Lines, "what was drawn replaces what was there")
	require.Equal(t, 2, c.Cameras[1].Interval)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.EqualValues(t, 0o640, info.Mode().Perm())

	require.ErrorContains(t, SetAnalytics(path, "c", zones), `no camera "c"`)
	require.ErrorIs(t, SetAnalytics(path+"x", "a", zones), os.ErrNotExist)
}

package head

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/engine"
)

func TestParseLayout(t *testing.T) {
	for name, want := range map[string]Layout{
		"": LayoutAuto, "auto": LayoutAuto, "YOLOv5": LayoutYOLOv5, "yolov8": LayoutYOLOv8, "end2end": LayoutEnd2End, "classify": LayoutClassify,
	} {
		got, err := ParseLayout(name)
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
	_, err := ParseLayout("retinanet")
	assert.EqualError(t, err, `layout "retinanet" is not known (`+strings.Join(Layouts(), ", ")+`)`)
	seen := map[Layout]bool{}
	for _, h := range All() {
		assert.False(t, seen[h.Layout], "two heads are called %s", h.Layout)
		seen[h.Layout] = true
		if h.Preset != "" {
			assert.Contains(t, engine.Presets(), h.Preset)
		}
		assert.NotEmpty(t, h.Form)
		assert.NotEmpty(t, h.Networks)
		assert.NotEmpty(t, h.Task)
	}
}

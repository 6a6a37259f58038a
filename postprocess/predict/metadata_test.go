package predict

import (
	"log/slog"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/postprocess/head"
)

// TestUnreadableMetadata: an entry of a model's metadata that is not in the form of its key does not keep the model from running. One line
// names it.
func TestUnreadableMetadata(t *testing.T) {
	detector := exported{[]tensor{out("images", 1, 3, 640, 640)}, []tensor{out("output0", 1, 84, 8400)}, ultralytics("detect", 80)}
	open := exported{[]tensor{out("images", -1, 3, -1, -1)}, []tensor{out("output0", 1, 84, 8400)}, ultralytics("detect", 80)}
	poses := exported{detector.inputs, []tensor{out("output0", 1, 56, 8400)}, ultralytics("pose", 1, "kpt_shape", "[17, 3]")}
	forms := []string{"None", "[]", "x y", "-1", "nan", "1e99", "[1, {}]", "{'a': ", "{'a': {}}", "tensor([32.])", "[[640]]", "\x00\xff"}
	for _, c := range []struct {
		name    string
		network exported
		want    head.Layout
		keys    []string
	}{
		{"detector", detector, "yolov8", []string{"task", "stride", "batch", "names", "imgsz", "kpt_shape", "kpt_names", "end2end", "args"}},
		{"detector of open size", open, "yolov8", []string{"stride", "batch", "imgsz"}},
		{"poses", poses, "pose", []string{"stride", "batch", "imgsz", "names", "kpt_shape", "kpt_names", "args"}},
	} {
		for _, key := range c.keys {
			for _, form := range forms {
				t.Run(c.name+"/"+key+"/"+form, func(t *testing.T) {
					changed := c.network
					changed.metadata = maps.Clone(changed.metadata)
					changed.metadata[key] = form
					var log strings.Builder
					o := Options{Model: "network.onnx", Backend: "onnxruntime=cpu", Log: slog.New(slog.NewTextHandler(&log, nil))}
					o.Bytes = changed.bytes(t)
					o.Threads = 1
					o.Slots = 1
					n, err := Open(t.Context(), o)
					require.NoError(t, err)
					defer n.Close()
					assert.Equal(t, c.want, n.Model().Recognised.Layout)
					if len(n.Model().Metadata.Ignored) == 0 { // a form of the key after all, such as [] of names
						assert.NotContains(t, log.String(), "ignored")
						return
					}
					assert.Equal(t, key, n.Model().Metadata.Ignored[0].Key)
					assert.Equal(t, 1, strings.Count(log.String(), "metadata of the model that cannot be read is ignored"), log.String())
					assert.Contains(t, log.String(), "model=network.onnx entries=")
				})
			}
		}
	}
}

package bench

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/engine/tensorrt"
)

func TestLayerProfile(t *testing.T) {
	p := &Profile{Version: "10.3.0", Device: "Orin", Precision: "int8", Batch: 1}
	p.add([]tensorrt.LayerTime{
		{Layer: "a", Time: 10 * time.Microsecond},
		{Layer: "copy", Time: 5 * time.Microsecond},
		{Layer: "a", Time: 20 * time.Microsecond},
		{Layer: "new", Time: 5 * time.Microsecond},
	}, []tensorrt.Layer{
		{Name: "a", Precision: "int8", Device: "GPU", Type: "Conv"},
		{Name: "unused"},
		{Name: "a", Precision: "fp16", Device: "DLA"},
		{Name: "copy", Precision: "fp16", Device: "GPU"},
	})
	var text bytes.Buffer
	require.NoError(t, p.print(&text))
	require.Equal(t, `tensorrt 10.3.0 on Orin, int8, batch 1: 4 layers, 40.0 us in total
mean us  share   device  precision  kind  layer
20.0     50.0 %  DLA     fp16       -     a
10.0     25.0 %  GPU     int8       Conv  a
5.0      12.5 %  GPU     fp16       -     copy
5.0      12.5 %  GPU     -          -     new
DLA fp16: 1 layers, 20.0 us, 50.0 %
GPU fp16: 1 layers, 5.0 us, 12.5 %
GPU int8: 1 layers, 10.0 us, 25.0 %
GPU unknown: 1 layers, 5.0 us, 12.5 %
`, text.String())
}

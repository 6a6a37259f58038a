package tensorrt_test

import (
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/tensorrt"
)

func floatBytes(f float32) []byte { return binary.LittleEndian.AppendUint32(nil, math.Float32bits(f)) }

func TestPlanFile(t *testing.T) {
	facts := tensorrt.PlanFacts{
		Version: "10.3.0.30", Architecture: "sm_87", GPU: "Orin", Precision: engine.FP16, Model: "a.onnx", Layers: 7, BuildSeconds: 1.5,
		Metadata: engine.Metadata{Labels: []string{"bolt", "nut"}, Width: 640, Height: 480},
	}
	file, err := tensorrt.EncodePlan(facts, []byte("the plan"))
	require.NoError(t, err)
	require.True(t, tensorrt.IsPlan(file))
	got, plan, err := tensorrt.ReadPlan(file)
	require.NoError(t, err)
	require.Equal(t, facts, got)
	require.Equal(t, "the plan", string(plan))

	for n := range file { // every truncation and every changed byte is noticed
		_, _, err := tensorrt.ReadPlan(file[:n])
		if n >= 8 {
			require.Error(t, err, n)
		}
		changed := slices.Clone(file)
		changed[n] ^= 0x10
		got, plan, err := tensorrt.ReadPlan(changed)
		if n >= 8 && err == nil {
			require.Fail(t, "a changed byte was not noticed", "byte %d: %v %q", n, got, plan)
		}
	}
	_, err = tensorrt.EncodePlan(tensorrt.PlanFacts{Model: string(make([]byte, 17<<20))}, nil)
	require.ErrorContains(t, err, "encode plan header: ")
}

// ultralytics writes a file like its exporter.
func ultralytics(header string, plan []byte) []byte {
	file := binary.LittleEndian.AppendUint32(nil, uint32(len(header)))
	return append(append(file, header...), plan...)
}

func TestUltralyticsEngine(t *testing.T) {
	header := `{"description": "Ultralytics YOLO11n model", "task": "detect", "stride": 32, "batch": 4, "imgsz": [384, 640],
		"names": {"0": "person", "1": "car"}, "args": {"half": true}}`
	plan := buildSmall(t, 8602, nil)
	_, raw, err := tensorrt.ReadPlan(plan.File)
	require.NoError(t, err)
	file := ultralytics(header, raw)
	require.True(t, tensorrt.IsPlan(file))
	facts, got, err := tensorrt.ReadPlan(file)
	require.NoError(t, err)
	require.Equal(t, raw, got)
	require.Equal(t, "8.6.2.0", facts.Version)
	want := engine.Metadata{
		Task: engine.Detect, Labels: []string{"person", "car"}, Stride: 32, Width: 640, Height: 384, Batch: 4,
		Preprocess: engine.Preprocess{Preset: "ultralytics"},
	}
	require.Equal(t, want, facts.Metadata)

	e, err := open(t, 8602, &tensorrt.Plan{File: file}, nil)
	require.NoError(t, err)
	require.Equal(t, []string{"person", "car"}, e.Model().Metadata.Labels)

	_, _, err = tensorrt.ReadPlan(ultralytics(header, nil))
	require.EqualError(t, err, "the file ends where the plan should begin")
	facts, _, err = tensorrt.ReadPlan(ultralytics(`{"stride": "many", "names": 7}`, raw))
	require.NoError(t, err, "what describes the network and cannot be read is not used")
	require.Len(t, facts.Metadata.Ignored, 2)
}

func TestIsPlan(t *testing.T) {
	for _, file := range []string{"", "\x08\x08\x12\x07pytorch", "FAKEMODEL\n", "{}", "\x02\x00\x00\x00{", "EIPLAN"} {
		require.False(t, tensorrt.IsPlan([]byte(file)), "%q", file)
	}
	for _, file := range []string{"ftrt", "ptrt", "EIPLAN1\n", "\x02\x00\x00\x00{}plan", "\x06\x00\x00\x00{\"a\" x"} {
		require.True(t, tensorrt.IsPlan([]byte(file)), "%q", file)
	}
}

func FuzzReadPlan(f *testing.F) {
	file, err := tensorrt.EncodePlan(tensorrt.PlanFacts{Version: "10.3.0"}, []byte("plan"))
	require.NoError(f, err)
	f.Add(file)
	f.Add(ultralytics(`{"task": "detect", "names": {"0": "person"}, "imgsz": [640, 640]}`, []byte("plan")))
	f.Add(append([]byte("ftrt\x00\x00\x00\x00"), make([]byte, 30)...))
	f.Fuzz(func(t *testing.T, file []byte) {
		facts, plan, err := tensorrt.ReadPlan(file)
		if err != nil {
			return
		}
		if len(plan) == 0 || len(plan) > len(file) {
			t.Fatalf("plan of %d bytes out of %d", len(plan), len(file))
		}
		again, err := tensorrt.EncodePlan(facts, plan)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := tensorrt.ReadPlan(again); err != nil {
			t.Fatal(err)
		}
	})
}

package kserve_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/edge-infer/edge-infer/engine/kserve"
)

func TestModelName(t *testing.T) {
	for path, name := range map[string]string{
		"/models/yolo 11n.onnx": "yolo_11n", "demo": "demo", ".-a.plan": "a", "a.b.engine": "a.b", "größe.onnx": "gr__e",
	} {
		assert.Equal(t, name, kserve.ModelName(path))
		assert.True(t, kserve.IsModelName(name), name)
	}
	for _, name := range []string{"", ".hidden", "-x", "a/b", "a b"} {
		assert.False(t, kserve.IsModelName(name), name)
	}
}

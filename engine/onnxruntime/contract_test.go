package onnxruntime_test

import (
	"testing"

	"github.com/edge-infer/edge-infer/engine/enginetest"
	"github.com/edge-infer/edge-infer/engine/onnxruntime"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestContract(t *testing.T) {
	enginetest.Run(t, enginetest.Backend{Open: onnxruntime.Open, SmallTypes: true, FreeSides: true})
}

package onnxruntime

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/enginetest"
)

// TestWaitingIsNotLetterbox holds the network, as a request of another slot does.
func TestWaitingIsNotLetterbox(t *testing.T) {
	options := enginetest.Network(t, "image")
	opened, err := Open(options)
	require.NoError(t, err)
	defer opened.Close()
	assert.Equal(t, 1, opened.Slots(), "a CPU computes one request at a time")
	e := opened.(*Engine)
	const hold = 500 * time.Millisecond
	e.inference <- struct{}{}
	image := engine.Image{Data: make([]byte, 96*64*3), Width: 96, Height: 64, Stride: 96 * 3, Format: engine.BGR}
	require.NoError(t, e.Submit(0, []engine.Image{image}))
	time.Sleep(hold)
	<-e.inference
	result, err := e.Wait(0)
	require.NoError(t, err)
	timing := &result.Timing
	assert.Greater(t, timing.Waiting(), int64(hold/2))
	assert.Less(t, timing.Preprocess, int64(hold/2))
	assert.Equal(t, timing.Done-timing.Submitted, timing.Waiting()+timing.Preprocess+timing.Inference)
}

package predict

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/engine"
)

func TestRawGivesOutputsAsTheyAre(t *testing.T) {
	e := newScripted(1)
	raw := WrapRaw(e)
	in := engine.Tensor{Name: "ids", Type: engine.Int64, Shape: []int64{1}, Data: make([]byte, 8)}
	result, err := raw.Tensors(in)
	require.NoError(t, err)
	assert.Equal(t, []engine.Tensor{in}, result.Outputs)
	result, err = WrapRaw(newScripted(1)).Images(shows(50))
	require.NoError(t, err)
	assert.NotEmpty(t, result.Outputs)
	e.refuse = errors.New("no")
	_, err = raw.Tensors(in)
	require.EqualError(t, err, "no")
	_, err = raw.Images(shows(50))
	require.EqualError(t, err, "no")
	require.NoError(t, raw.Close())
}

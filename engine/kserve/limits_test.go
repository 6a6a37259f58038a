package kserve

import (
	"bytes"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestLongListsTakeLittleMemory: a body of many tiny elements is refused before it takes many times its size. The decoder buffers one
// element.
func TestLongListsTakeLittleMemory(t *testing.T) {
	const size = 20 << 20
	list := func(before, element, after string) []byte {
		body := append([]byte(before), bytes.Repeat([]byte(element+","), size/(len(element)+1))...)
		return append(append(body, element...), after...)
	}
	for _, c := range []struct {
		name, want string
		body       []byte
	}{
		{"inputs", "more than 256 tensors", list(`{"inputs":[`, `{}`, `]}`)},
		{"outputs", "more than 256 tensors", list(`{"inputs":[],"outputs":[`, `{}`, `]}`)},
		{"dimensions", "more than 8 dimensions", list(`{"inputs":[{"name":"a","datatype":"FP32","shape":[`, `1`, `]}]}`)},
	} {
		t.Run(c.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			var r InferRequest
			err := r.UnmarshalHTTP(c.body, -1)
			runtime.ReadMemStats(&after)
			require.ErrorIs(t, err, errMalformed)
			require.ErrorContains(t, err, c.want)
			assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(4*size), "bytes allocated for a body of 20 MiB")
		})
	}
}

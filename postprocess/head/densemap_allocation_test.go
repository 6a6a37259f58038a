//go:build !race

package head

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/edge-infer/edge-infer/engine"
)

// The race detector allocates on its own.
func TestMapsNoAllocations(t *testing.T) {
	semantic, depth := whole(make([]float32, 21*160*120), []int64{1, 21, 120, 160}), whole(make([]float32, 160*120), []int64{1, 120, 160})
	for task, output := range map[engine.Task]engine.Tensor{engine.Semantic: semantic, engine.Depth: depth} {
		d := mapped(t, task, 0, &output)
		given := result(letterboxed(), output)
		decode := func() {
			if _, _, err := d.Decode(given, 0, 1000, 500, nil); err != nil || d.Map(0) == nil {
				t.Fatal(err)
			}
		}
		decode()
		assert.Zero(t, testing.AllocsPerRun(20, decode), task)
	}
}

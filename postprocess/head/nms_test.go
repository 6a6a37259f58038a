package head

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/scan"
)

// TestSortedInRuns: run by run candidates come in the order that sorting all of them gives, however many share a score.
func TestSortedInRuns(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 9))
	for _, levels := range []int{1, 2, 7, 100, 1 << 20} {
		for _, size := range []int{0, 1, 2, sortedRun - 1, sortedRun, sortedRun + 1, 5000} {
			list := make([]scan.Candidate, size)
			for i := range list {
				list[i] = scan.Candidate{
					Score: float32(random.IntN(levels)+1) / float32(levels), Class: int32(random.IntN(3)),
					Box: postprocess.Box{X1: float32(i), X2: float32(i) + 1, Y2: 1},
				}
			}
			whole := sortKeys(nil, list)
			sortByScore(whole, list)
			keys := sortKeys(nil, list)
			random.Shuffle(len(keys), func(i, k int) { keys[i], keys[k] = keys[k], keys[i] })
			for sorted := 0; sorted < len(keys); {
				run := sortFront(keys[sorted:], list, max(sorted, sortedRun))
				require.Positive(t, run)
				sorted += run
				require.True(t, slices.Equal(whole[:sorted], keys[:sorted]), "%d candidates of %d scores, first %d", size, levels, sorted)
			}
		}
	}
}

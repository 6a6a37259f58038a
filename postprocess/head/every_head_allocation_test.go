//go:build !race

package head

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The race detector allocates on its own.
func TestEveryHeadNoAllocations(t *testing.T) {
	for _, e := range examples(t) {
		d, given := e.open(t)
		found, _, err := d.Decode(given, 0, 64, 64, nil)
		require.NoError(t, err, e.layout)
		require.True(t, len(found) > 0 || d.Map(0) != nil, e.layout)
		require.Zero(t, testing.AllocsPerRun(20, func() { found, _, _ = d.Decode(given, 0, 64, 64, found[:0]) }), e.layout)
	}
}

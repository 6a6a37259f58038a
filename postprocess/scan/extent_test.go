package scan

import (
	"image"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestExtentHoldsWhatIsOverZero(t *testing.T) {
	random := rand.New(rand.NewPCG(15, 16))
	for round := range 300 {
		size := image.Pt(1+random.IntN(40), 1+random.IntN(20))
		grid, columns := make([]float32, size.X*size.Y), make([]int32, size.X)
		for i := range grid {
			grid[i] = -random.Float32()
		}
		grid[random.IntN(len(grid))] = float32(math.NaN())
		for i := range columns {
			columns[i] = random.Int32() // of the mask before
		}
		want := image.Rectangle{}
		for range round % 4 {
			x, y := random.IntN(size.X), random.IntN(size.Y)
			grid[y*size.X+x] = 1e-30
			want = want.Union(image.Rect(x, y, x+1, y+1))
		}
		require.Equal(t, want, PositiveBounds(grid, size, columns))
	}
}

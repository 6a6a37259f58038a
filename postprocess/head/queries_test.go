package head

import (
	"math"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/postprocess/scan"
)

// The likely rows, and the numbers that their scores are made of, are to the last bit those of plain code, whatever the rows' lengths.
func TestQueriesAreThoseOfPlainCode(t *testing.T) {
	random := rand.New(rand.NewPCG(21, 22))
	odd := []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), 200, -200}
	listed := 0
	for round := range 2000 {
		rows, classes := random.IntN(40), 1+random.IntN(100)
		logits := make([]float32, rows*(classes+1))
		for i := range logits {
			logits[i] = float32(3 * random.NormFloat64())
			switch {
			case i%(classes+1) == classes:
				logits[i] += float32(random.IntN(8))
			case random.IntN(20) == 0:
				logits[i] = logits[i-i%(classes+1)] // several are the highest
			case round%4 == 0 && random.IntN(500) == 0:
				logits[i] = odd[random.IntN(len(odd))]
			}
		}
		odds := float32(random.NormFloat64())
		if random.IntN(50) == 0 {
			odds = float32(math.Inf(-1)) // of a threshold of 0
		}
		got := make([]scan.Query, rows)
		got = got[:scan.FilterQueries(got, logits, classes, odds)]
		want := plainQueries(logits, classes, odds)
		require.Len(t, got, len(want), "round %d", round)
		for i, w := range want {
			listed++
			require.Equal(t, w.Row, got[i].Row, "round %d", round)
			if !(w.Sum > 0 && w.Sum <= math.MaxFloat32) { // there are no scores
				require.False(t, got[i].Sum > 0 && got[i].Sum <= math.MaxFloat32, "round %d: %+v", round, got[i])
				continue
			}
			if runtime.GOARCH != "amd64" { // where compilers fuse multiplying and adding, each in its own places
				require.InEpsilon(t, w.Sum, got[i].Sum, 1e-6, "round %d", round)
				w.Sum = got[i].Sum
			}
			require.Equal(t, w, got[i], "round %d", round)
		}
	}
	require.Greater(t, listed, 10000)
}

// plainQueries looks at one number after another.
func plainQueries(logits []float32, classes int, odds float32) []scan.Query {
	var list []scan.Query
	for at := 0; at < len(logits); at += classes + 1 {
		row := logits[at:][:classes+1]
		q := scan.Query{Row: int32(at / (classes + 1)), MaxLogit: row[0]}
		likely := false
		for class, v := range row {
			if class < classes && !(v-row[classes] < odds) {
				likely = true
			}
			if class < classes && v > row[q.Class] {
				q.Class = int32(class)
			}
			q.MaxLogit = max(q.MaxLogit, v)
		}
		for _, v := range row {
			q.Sum += exp(v - q.MaxLogit)
		}
		if likely {
			list = append(list, q)
		}
	}
	return list
}

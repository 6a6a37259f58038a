package head

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/engine"
)

// Exports of insightface leave the size open, and with it the number of boxes: the scales follow from the order of the file.
func TestSCRFDOfAnyInputSize(t *testing.T) {
	all := readHeads(t)
	at := slices.IndexFunc(all, func(c goldenHead) bool { return c.Name == "scrfd-unbatched" })
	identity := engine.Transform{ScaleX: 1, ScaleY: 1}
	m, given := all[at].open(t, 64, identity)
	fixed := openDecoder(t, m, Options{})
	want, _, err := fixed.Decode(given, 0, 64, 64, nil)
	require.NoError(t, err)
	require.NotEmpty(t, want)
	for i := range m.Outputs {
		m.Outputs[i].Shape = []int64{-1, m.Outputs[i].Shape[1]}
	}
	open := openDecoder(t, m, Options{})
	require.Equal(t, LayoutSCRFD, open.Recognised().Layout)
	got, _, err := open.Decode(given, 0, 64, 64, nil)
	require.NoError(t, err)
	require.Equal(t, want, got)

	m.Width, m.Height = 96, 96
	other := openDecoder(t, m, Options{})
	_, _, err = other.Decode(given, 0, 64, 64, nil)
	require.ErrorIs(t, err, ErrOutput, "rows of another input size")
}

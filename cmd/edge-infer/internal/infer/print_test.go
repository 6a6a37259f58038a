package infer

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/postprocess"
)

func TestNamesDoNotReachTheTerminal(t *testing.T) {
	seen := &Seen{
		detections: []postprocess.Detection{{Score: 0.5}},
		labels:     []string{"it's\nnew 人"},
	}
	seen.File = "a\nb.jpg #0  person 0.99\x1b[2J\xff.jpg"
	var text bytes.Buffer
	require.NoError(t, seen.Print(&text))
	assert.Equal(t, "a b.jpg #0  person 0.99?[2J?.jpg #0  it's new 人 0.50 [0,0 0,0]\n", text.String())
}

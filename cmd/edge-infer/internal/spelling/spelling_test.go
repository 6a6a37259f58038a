package spelling_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/spelling"
)

func TestNearest(t *testing.T) {
	words := []string{"cameras", "camera", "model"}
	assert.Equal(t, "cameras", spelling.Nearest("camras", words))
	assert.Equal(t, "model", spelling.Nearest("modle", words))
	assert.Empty(t, spelling.Nearest("zzz", words))
	assert.Equal(t, "output", spelling.Nearest("out", []string{"output-dir", "output", "model"}))
	assert.Empty(t, spelling.Nearest("o", []string{"output"}), "one letter says nothing")
}

package spelling

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestNearest(t *testing.T) {
	words := []string{"cameras", "camera", "model"}
	assert.Equal(t, "cameras", Nearest("camras", words))
	assert.Equal(t, "model", Nearest("modle", words))
	assert.Empty(t, Nearest("zzz", words))
	assert.Empty(t, Nearest("servers", []string{"every"}), "half of the letters differ")
	assert.Equal(t, "output", Nearest("out", []string{"output-dir", "output", "model"}))
	assert.Empty(t, Nearest("o", []string{"output"}), "one letter says nothing")
}

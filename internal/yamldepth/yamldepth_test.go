package yamldepth

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestCheck(t *testing.T) {
	for _, text := range []string{
		"", "a: 1\n", "a: [[1, 2], {b: [3]}]\n", strings.Repeat("- a\n", 1000), strings.Repeat("a: [1]\n", 1000),
		"# " + strings.Repeat("[", 1000) + "\n", "a: \"" + strings.Repeat("[", 1000) + "\"\n", strings.Repeat("]", 1000),
		strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth),
	} {
		assert.NoError(t, Check([]byte(text)), "%.40q", text)
	}
	for _, part := range []string{"[", "{", "{a: ", "[{a: ", "- ", "? "} {
		assert.ErrorIs(t, Check([]byte("cameras: "+strings.Repeat(part, 200_000))), ErrTooDeep, "%.40q", part)
		assert.ErrorIs(t, Check([]byte(strings.Repeat(part, maxDepth+1))), ErrTooDeep, "%.40q", part)
	}
}

// Text is only rejected if it has enough characters that open a collection.
func FuzzCheck(f *testing.F) {
	f.Add([]byte("a: [1, {b: 2}]\n- - - c"))
	f.Add([]byte(strings.Repeat("[", maxDepth+1)))
	f.Add([]byte("? - ? - [x"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := Check(text); err != nil {
			assert.Greater(t, bytes.Count(text, []byte("["))+bytes.Count(text, []byte("{"))+bytes.Count(text, []byte("-"))+
				bytes.Count(text, []byte("?")), maxDepth)
		}
	})
}

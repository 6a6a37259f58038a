package nesting

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestCheckYAML(t *testing.T) {
	for _, text := range []string{
		"", "a: 1\n", "a: [[1, 2], {b: [3]}]\n", strings.Repeat("- a\n", 1000), strings.Repeat("a: [1]\n", 1000),
		"# " + strings.Repeat("[", 1000) + "\n", "a: \"" + strings.Repeat("[", 1000) + "\"\n", strings.Repeat("]", 1000),
		strings.Repeat("[", most) + strings.Repeat("]", most),
	} {
		assert.NoError(t, CheckYAML([]byte(text)), "%.40q", text)
	}
	for _, part := range []string{"[", "{", "{a: ", "[{a: ", "- ", "? "} {
		assert.ErrorIs(t, CheckYAML([]byte("cameras: "+strings.Repeat(part, 200_000))), ErrYAML, "%.40q", part)
		assert.ErrorIs(t, CheckYAML([]byte(strings.Repeat(part, most+1))), ErrYAML, "%.40q", part)
	}
}

// Nothing is refused that has not enough signs to open so much.
func FuzzCheckYAML(f *testing.F) {
	f.Add([]byte("a: [1, {b: 2}]\n- - - c"))
	f.Add([]byte(strings.Repeat("[", most+1)))
	f.Add([]byte("? - ? - [x"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := CheckYAML(text); err != nil {
			assert.Greater(t, bytes.Count(text, []byte("["))+bytes.Count(text, []byte("{"))+bytes.Count(text, []byte("-"))+
				bytes.Count(text, []byte("?")), most)
		}
	})
}

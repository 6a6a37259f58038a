package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
)

// Whoever gives a file, a label or a camera its name does not steer the terminal of who reads about it, and writes no line of his own.
func TestNamesDoNotSteerTheTerminal(t *testing.T) {
	programtest.Long(t)
	t.Parallel()
	dir := t.TempDir()
	hostile := filepath.Join(dir, "a\x1b]0;title\x07\x1b[2J\nedge-infer: all is well \u202eb")
	file := func(suffix, text string) string {
		require.NoError(t, os.WriteFile(hostile+suffix, []byte(text), 0o600))
		return hostile + suffix
	}
	text, labels := file(".onnx", "no model"), file(".txt", "bolt\x1b[31m\nnut\u202e\nwasher\ngear\x9b31m\n")
	broken := file(".yaml", "cameras: [{name: \"b\\e[2Jelt\", uri: demo, \"k\\e[2Jey\": 1}]\n")
	for _, c := range []struct {
		args  string // with FILE in it
		named string
	}{
		{"--camera demo --mqtt off --web off --model FILE", text},
		{"infer FILE", text},
		{"infer FILE", hostile + ".none"},
		{"inspect FILE", text},
		{"build FILE", text},
		{"quantize --precision fp16 --gate 0 --images FILE -o /dev/null/x", text},
		{"validate --data FILE", text},
		{"bench --model FILE", text},
		{"bench --compare FILE FILE", text},
		{"serve FILE", text},
		{"export triton --repository /dev/null/x --model FILE", text},
		{"model pull FILE", text},
		{"model info FILE", text},
		{"config check FILE", broken},
		{"config show --config FILE", broken},
		{"doctor --mqtt off --engine onnxruntime=cpu --root /none --camera FILE", text},
		{"doctor --mqtt off --engine onnxruntime=cpu --root /none --model FILE", text},
		{"inspect --engine onnxruntime=cpu --labels FILE", labels},
		{"--camera demo?width=320&height=240 --engine onnxruntime=cpu --mqtt off --web off --frames 2 --labels FILE", labels},
		{"--camera FILE=demo --mqtt off --web off --frames 1", text},
		{"FILE", hostile},
		{"--FILE", hostile},
	} {
		var args []string
		for _, arg := range strings.Fields(c.args) {
			args = append(args, strings.ReplaceAll(arg, "FILE", c.named))
		}
		output, _ := programtest.Command(t, args...).CombinedOutput()
		require.NotEmpty(t, output, c.args)
		assert.NotRegexp(t, "[\x00-\x08\x0b-\x1f\x7f\u0080-\u009f\u202e]", string(output), c.args)
		assert.NotRegexp(t, `(?m)^edge-infer: all is well`, string(output), c.args)
	}
}

func TestReasonsOfAnError(t *testing.T) {
	one, two := errors.New("one\x1b[2J"), errors.New("two\nlines")
	assert.Equal(t, []string{"one?[2J"}, reasons(one))
	assert.Equal(t, []string{"one?[2J", "two lines"}, reasons(errors.Join(one, two)))
	assert.Equal(t, []string{"one?[2J", "two lines", "one?[2J"}, reasons(errors.Join(errors.Join(one, nil, two), one)))
	assert.Equal(t, []string{"one?[2J: two lines"}, reasons(fmt.Errorf("%w: %w", one, two)))
}

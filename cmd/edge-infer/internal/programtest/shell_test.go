package programtest

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A script ends where it runs a program that package testtool does not know, also in a loop that waits for its success, in a pipeline and
// with another process in the background.
func TestScriptEndsAtAnUnknownProgram(t *testing.T) {
	t.Parallel()
	const message = "tac is missing: run make deps; if that does not help, add it with its Debian package to internal/testtool," +
		" and the package to a line of apt_install in cross/deps\n"
	for _, script := range []string{
		"tac </dev/null",
		"until tac </dev/null; do sleep 1; done",
		"until tac </dev/null | grep --quiet x; do sleep 1; done",
		"sleep 1000 &\ntrap 'kill $!' EXIT\nuntil tac </dev/null | grep --quiet x; do sleep 1; done",
	} {
		output, err := Shell(t, t.TempDir())(script)
		require.Error(t, err, script)
		assert.Contains(t, output, message, script)
	}
	output, err := Shell(t, t.TempDir())("echo one two | cut --delimiter ' ' --fields 2")
	require.NoError(t, err)
	assert.Equal(t, "two\n", output)
}

package programtest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/internal/testtool"
)

// notFound is the bash function that a missing command runs, in a process of its own. It ends the script: a loop until a command succeeds
// would not end.
const notFound = `command_not_found_handle() {
	echo "$1 is missing: run make deps; if that does not help, add it with its Debian package to internal/testtool," \
		"and the package to a line of apt_install in cross/deps" >&2
	kill $$
}
`

// Shell returns a function that runs bash commands in a directory, for at most 10 times Patience. The PATH has edge-infer and the programs
// of package testtool. The first command that fails ends the script.
func Shell(t testing.TB, dir string) func(lines string) (output string, err error) {
	programs := t.TempDir()
	self, err := os.Executable()
	require.NoError(t, err)
	require.NoError(t, os.Symlink(self, filepath.Join(programs, "edge-infer")))
	testtool.Link(t, programs)
	environment := append(CommandWith(t, []string{"EDGE_INFER_MQTT_LISTEN=127.0.0.1:0"}).Env, "PATH="+programs)
	return func(lines string) (string, error) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*Patience)
		defer cancel()
		c := exec.CommandContext(ctx, testtool.Program(t, "bash"), "-euo", "pipefail", "-c", notFound+lines)
		c.Dir, c.Env = dir, environment
		c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
		c.WaitDelay = 10 * time.Second
		output, err := c.CombinedOutput()
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return string(output), err
	}
}

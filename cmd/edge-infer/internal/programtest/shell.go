package programtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Shell returns a function that runs bash commands in a directory, with edge-infer on the PATH. The first command that fails ends the
// script.
func Shell(t testing.TB, dir string) func(lines string) (output string, err error) {
	programs := t.TempDir()
	self, err := os.Executable()
	require.NoError(t, err)
	require.NoError(t, os.Symlink(self, filepath.Join(programs, "edge-infer")))
	environment := append(CommandWith(t, []string{"EDGE_INFER_MQTT_LISTEN=127.0.0.1:0"}).Env, "PATH="+programs+":"+os.Getenv("PATH"))
	return func(lines string) (string, error) {
		c := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", lines)
		c.Dir, c.Env = dir, environment
		c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
		c.WaitDelay = 10 * time.Second
		output, err := c.CombinedOutput()
		return string(output), err
	}
}

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
)

// mounted runs a command with a small file system over a directory, which nobody else sees. It is skipped where that is not allowed.
func mounted(t *testing.T, c *exec.Cmd, options, dir string) (stderr string, err error) {
	if exec.CommandContext(t.Context(), "unshare", "-rm", "mount", "-t", "tmpfs", "none", dir).Run() != nil {
		t.Skip("no mounts in a namespace of one's own here")
	}
	shell := []string{"unshare", "-rm", "sh", "-c", `mount -t tmpfs -o "$1" none "$2" && shift 2 && exec "$@"`, "sh", options, dir}
	wrapped := exec.CommandContext(t.Context(), shell[0], append(shell[1:], c.Args...)...)
	wrapped.Env = append(c.Env, "XDG_CACHE_HOME="+dir)
	var text bytes.Buffer
	wrapped.Stderr = &text
	err = wrapped.Run()
	lines := bytes.Split(bytes.TrimSpace(text.Bytes()), []byte("\n"))
	return string(lines[len(lines)-1]), err
}

func TestCacheThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	environment, model := programtest.FakeMachine(t, 100300)
	dir := t.TempDir()
	img := filepath.Join(t.TempDir(), "none.jpg") // it does not come to that
	require.NoError(t, os.WriteFile(img, nil, 0o600))
	infer := []string{"infer", img, "--model", model, "--engine", "tensorrt"}

	text, err := mounted(t, programtest.CommandWith(t, environment, infer...), "size=4k", dir) // the timings take the only page
	require.Error(t, err)
	require.Regexp(t, `^edge-infer: engine plan not built: tensorrt write: `+dir+`/edge-infer/[0-9a-f-]+\.plan: write .*: `+
		`no space left on device \(free 1 MiB on that disk, or set XDG_CACHE_HOME to another one\)$`, text)

	text, err = mounted(t, programtest.CommandWith(t, environment, infer...), "ro", dir)
	require.Error(t, err)
	require.Equal(t, "edge-infer: engine plan not built: tensorrt write: "+dir+"/edge-infer: mkdir "+dir+"/edge-infer: "+
		"read-only file system (make the directory writable for this user, or set XDG_CACHE_HOME to one that is)", text)

	text, err = mounted(t, programtest.CommandWith(t, environment, "build", model), "size=4k", dir)
	require.Error(t, err)
	require.Contains(t, text, "no space left on device (free 1 MiB on that disk, or set XDG_CACHE_HOME to another one)")
}

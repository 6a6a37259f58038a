package daemon

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
)

// TestAnAbsentCameraIsTriedAgain: a camera that is not there at the start is logged once with the remedy, and runs as soon as it is there:
// a device, a video that is shown again and again, and one that is read once.
func TestAnAbsentCameraIsTriedAgain(t *testing.T) {
	t.Parallel()
	video := filepath.Join(t.TempDir(), "video.mp4")
	p := programtest.Start(t, "--camera", "belt=demo?width=160&height=120&fps=5", "--camera", "usb=97", "--camera",
		"late=file://"+video+"?loop=1",
		"--model", "demo", "--camera", "once="+video, "--mqtt", "off", "--json")
	log := func() []string { return strings.Split(p.Stderr.String(), "\n") }
	about := func(words ...string) (found int) {
		for _, line := range log() {
			matches := true
			for _, word := range words {
				matches = matches && strings.Contains(line, word)
			}
			if matches {
				found++
			}
		}
		return found
	}
	for about("camera unavailable", "usb") == 0 || about("camera unavailable", "late") == 0 || about("camera unavailable", "once") == 0 {
		_, more := p.Frame()
		require.True(t, more)
	}
	require.Equal(t, 1, about("camera unavailable", "usb", "/dev/video97: no such camera", "--camera demo"), p.Stderr)
	require.NoError(t, os.Rename(programtest.Video(t, 20), video))
	for seen := map[string]bool{}; !seen["late"] || !seen["once"]; {
		f, more := p.Frame()
		require.True(t, more)
		seen[f.Camera] = true
	}
	for about("camera recovered", "late") == 0 {
		_, more := p.Frame()
		require.True(t, more)
	}
	require.NoError(t, p.Command.Process.Signal(syscall.SIGTERM))
	_, _ = p.Rest()
	require.NoError(t, p.Wait())
	require.Equal(t, 1, about("camera unavailable", "usb"), p.Stderr)
	require.Equal(t, 1, about("camera unavailable", "late"), p.Stderr)
	require.Equal(t, 1, about("camera unavailable", "once"), p.Stderr)
}

// TestUnverifiedCertificatesAreSaid: a camera whose certificate is not to be verified is used, with a warning.
func TestUnverifiedCertificatesAreSaid(t *testing.T) {
	t.Parallel()
	address := fmt.Sprintf("rtsps://user:secret@127.0.0.1:%d/stream#certificate=insecure", programtest.FreePort(t))
	p := programtest.Start(t, "--model", "demo", "--camera", address, "--mqtt", "off")
	p.Logged("the certificate of the camera is not verified")
	require.NotContains(t, p.Stderr.String(), "secret")
	require.NoError(t, p.Stop(syscall.SIGTERM))
}

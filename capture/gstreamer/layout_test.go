package gstreamer

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// headerFlags are the compiler flags for GStreamer's headers; the test is skipped where they are not installed.
func headerFlags(t *testing.T) []string {
	for _, tool := range []string{"cc", "pkg-config"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(tool + " is not installed: run make deps")
		}
	}
	output, err := exec.Command("pkg-config", "--cflags", "gstreamer-app-1.0", "gstreamer-video-1.0").Output()
	if err != nil {
		t.Skip("libgstreamer-plugins-base1.0-dev is not installed: run make deps")
	}
	return strings.Fields(string(output))
}

// The declarations in abi.h are those of the installed headers.
func TestLayout(t *testing.T) {
	arguments := append(headerFlags(t), "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "testdata/layout.c")
	output, err := exec.Command("cc", arguments...).CombinedOutput()
	require.NoError(t, err, "%s", output)
}

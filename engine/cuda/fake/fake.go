// Package fake builds a CUDA driver that runs on any machine, for tests of the packages that drive a GPU.
package fake

import (
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

//go:embed driver/libcuda.c
var source []byte

// Version is the CUDA version of the driver that Build makes for version 0.
const Version = 12020

// Build compiles the driver into directory as libcuda.so.1 and returns its path. version, 1000*major + 10*minor, leaves out what a driver
// of that CUDA version lacks; 0 is the newest. The head of driver/libcuda.c lists the environment variables that direct it.
func Build(dir string, version int) (string, error) {
	if version == 0 {
		version = Version
	}
	file := filepath.Join(dir, "libcuda.c")
	if err := os.WriteFile(file, source, 0o600); err != nil {
		return "", err
	}
	return Compile(filepath.Join(dir, "libcuda.so.1"), "-std=gnu11", "-fvisibility=hidden",
		fmt.Sprintf("-DFAKE_CUDA_VERSION=%d", version), file, "-ldl", "-lpthread")
}

// Compile makes a shared object from C or C++ with $CC (cc without it), $CFLAGS and the given compiler arguments.
func Compile(out string, arguments ...string) (string, error) {
	compiler := os.Getenv("CC")
	if compiler == "" {
		compiler = "cc"
	}
	flags := append([]string{"-O1", "-shared", "-fPIC", "-o", out}, strings.Fields(os.Getenv("CFLAGS"))...)
	command := exec.Command(compiler, append(flags, arguments...)...)
	if output, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("compile %s: %w\n%s", filepath.Base(out), err, output)
	}
	return out, nil
}

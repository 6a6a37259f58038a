package fake

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// GPUEnvironment asks the tests of a package that drives a GPU for those that need a real one: go test -c ./engine/cuda, then
// EDGE_INFER_TEST_GPU=1 ./cuda.test -test.run Hardware on the machine that has it.
const GPUEnvironment = "EDGE_INFER_TEST_GPU"

// childEnvironment marks a process that Another started.
const childEnvironment = "EDGE_INFER_TEST_CUDA_CHILD"

// Main is a test binary's TestMain: it runs the tests against the newest fake driver, whose path it puts into the environment variable
// library, which names the driver to load. It builds none where that variable is set already or GPUEnvironment asks for a real GPU. A
// process opens one driver, so a test that needs another one starts itself again by Another.
func Main(m *testing.M, library string) {
	if os.Getenv(library) != "" || os.Getenv(GPUEnvironment) != "" {
		os.Exit(m.Run())
	}
	dir, err := os.MkdirTemp("", "cuda")
	if err == nil {
		var path string
		if path, err = Build(dir, 0); err == nil {
			err = os.Setenv(library, path)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// Another runs one test of this binary, which begins with Child, in a process of its own with further environment variables NAME=value.
func Another(t *testing.T, test string, environment ...string) {
	t.Helper()
	command := exec.Command(os.Args[0], "-test.run=^"+test+"$", "-test.v", "-test.timeout=10m")
	command.Env = append(append(os.Environ(), childEnvironment+"=1"), environment...)
	output, err := command.CombinedOutput()
	require.NoError(t, err, "%s", output)
}

// Child skips a test that only runs in a process of its own, which Another starts.
func Child(t *testing.T) {
	t.Helper()
	if os.Getenv(childEnvironment) == "" {
		t.Skip("runs in a process that another test starts")
	}
}

// Hardware skips a test that needs a real GPU where none was asked for.
func Hardware(t *testing.T) {
	t.Helper()
	if os.Getenv(GPUEnvironment) == "" {
		t.Skip("needs a GPU: set " + GPUEnvironment + "=1 on a machine that has one")
	}
}

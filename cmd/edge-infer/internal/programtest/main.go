// Package programtest runs this program in tests: a test binary that behaves as edge-infer when it is told to, stand-ins for a GPU and for
// TensorRT, brokers, and what else tests of the program share. Only tests import it.
package programtest

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// runAsProgram makes the test binary behave as edge-infer itself, so that tests talk to a real process.
const runAsProgram = "EDGE_INFER_TEST_PROGRAM"

// Patience is how long a test waits for what must come, on a machine that is busy with other tests.
const Patience = 60 * time.Second

// sharedDir holds what several tests use and none changes: libraries that were compiled, images that were drawn.
var (
	sharedDir  string
	sharedOnce sync.Map // of a name, what makes it
)

// Main is the body of TestMain: it runs the tests, or the program where the process was started by Command. It does not return.
func Main(m *testing.M, program func(args []string) (status int)) {
	if os.Getenv(runAsProgram) != "" {
		os.Exit(program(os.Args[1:]))
	}
	os.Exit(withShared(m))
}

func withShared(m *testing.M) (status int) {
	var err error
	if sharedDir, err = os.MkdirTemp("", "edge-infer-test-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(sharedDir)
	return m.Run()
}

// Shared gives a directory that the first test which asks for that name has filled.
func Shared(t testing.TB, name string, fill func(dir string) error) (dir string) {
	dir = filepath.Join(sharedDir, name)
	once, _ := sharedOnce.LoadOrStore(name, sync.OnceValue(func() error {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
		return fill(dir)
	}))
	require.NoError(t, once.(func() error)())
	return dir
}

// Project is the path of a file of this project.
func Project(path string) string {
	_, here, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(here), "..", "..", "..", "..", filepath.FromSlash(path))
}

// Package programtest runs edge-infer in tests. The test binary itself acts as the program, so that it is built once; the package also has
// stand-ins for a GPU and TensorRT, brokers and shared test data. Only tests import it.
package programtest

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// runAsProgram is the environment variable that makes the test binary act as edge-infer, so that tests use a real process.
const runAsProgram = "EDGE_INFER_TEST_PROGRAM"

// Patience is the timeout for anything a test waits for. It is long because the machine may be busy.
const Patience = 60 * time.Second

// sharedDir holds read-only data shared by tests, such as compiled libraries and rendered images.
var (
	sharedDir  string
	sharedOnce sync.Map // by name, a function that creates it once
)

// Main is the body of TestMain. It runs the tests, or the program if the process was started by Command. It does not return.
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

// Shared returns a directory that the first call with this name fills.
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

// root is the repository's directory, found from the directory in which the test program starts. It also works with -trimpath.
var root = sync.OnceValue(func() string {
	for dir := startDir; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			panic("no go.mod above " + startDir)
		}
	}
})

// startDir is read before a test can change the working directory.
var startDir, _ = os.Getwd()

// Long skips a test of minutes in short runs, which is what the race detector gets: the packages' own tests run the same code with it.
func Long(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes minutes with the race detector; make test runs it")
	}
}

// Project returns the absolute path of a file of the repository.
func Project(path string) string { return filepath.Join(root(), filepath.FromSlash(path)) }

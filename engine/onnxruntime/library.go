package onnxruntime

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	ort "github.com/yalue/onnxruntime_go"

	"github.com/edge-infer/edge-infer/engine"
)

// libraryVariable is the environment variable that names the shared library.
const libraryVariable = "EDGE_INFER_ONNXRUNTIME"

// minVersion is the oldest ONNX Runtime that onnxruntime_go v1.27 supports.
const minVersion = "1.24"

// candidates lists the libraries to try, best first. A configured library is the only candidate.
func candidates(named string) []string {
	if named == "" {
		named = os.Getenv(libraryVariable)
	}
	if named != "" {
		// PyPI's package has the library in a directory, with the version in its name.
		if found, _ := filepath.Glob(filepath.Join(named, "libonnxruntime.so*")); len(found) > 0 {
			return found
		}
		return []string{named}
	}
	var paths []string
	if executable, err := os.Executable(); err == nil {
		if target, err := filepath.EvalSymlinks(executable); err == nil {
			executable = target
		}
		beside := filepath.Dir(executable)
		for _, dir := range []string{beside, filepath.Join(beside, "..", "lib", "edge-infer")} {
			paths = append(paths, filepath.Join(dir, "libonnxruntime.so.1"), filepath.Join(dir, "libonnxruntime.so"))
		}
	}
	return append(paths, "libonnxruntime.so.1", "libonnxruntime.so")
}

// library is the loaded ONNX Runtime with its number of users. It is global because onnxruntime_go has one library and environment per
// process.
var library struct {
	mu    sync.Mutex
	users int
	path  string
}

// acquire loads the library for the first user and counts further users. Every success needs one release.
func acquire(named string) (path string, err error) {
	library.mu.Lock()
	defer library.mu.Unlock()
	paths := candidates(named)
	if library.users > 0 {
		if named != "" && !slices.ContainsFunc(paths, func(path string) bool { return sameFile(path, library.path) }) {
			return "", &engine.Error{
				Op: "open", Backend: backend, Kind: engine.ErrUnavailable,
				Message: fmt.Sprintf("%s is already loaded, a process cannot also use %s", library.path, named),
				Hint:    "configure the same library for all engines",
			}
		}
		library.users++
		return library.path, nil
	}
	var tried []string
	for _, path := range paths {
		reason := load(path)
		if reason == nil {
			library.users, library.path = 1, path
			return path, nil
		}
		tried = append(tried, reason.Error())
	}
	return "", &engine.Error{
		Op: "open", Backend: backend, Kind: engine.ErrUnavailable,
		Message: "no usable libonnxruntime, tried " + strings.Join(tried, "; "),
		Hint: fmt.Sprintf("pip install --target ort 'onnxruntime>=%s' && export %s=$PWD/ort/onnxruntime/capi; packages of edge-infer contain it",
			minVersion, libraryVariable),
	}
}

// load makes path the process's ONNX Runtime. The error starts with the path.
func load(path string) error {
	if strings.ContainsRune(path, filepath.Separator) {
		if _, err := os.Stat(path); err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("%s: no such file", path)
			}
			return fmt.Errorf("%s: %w", path, errors.Unwrap(err))
		}
	}
	// Otherwise Microsoft's builds since 1.29 store an ID and a database in the home directory and send telemetry.
	if err := os.Setenv("ORT_DISABLE_TELEMETRY", "1"); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	ort.SetSharedLibraryPath(path)
	runtime.LockOSThread() // onnxruntime_go calls dlerror, which is per thread, separately
	err := ort.InitializeEnvironment(ort.WithLogLevelFatal())
	runtime.UnlockOSThread()
	switch {
	case err == nil:
		return nil
	case strings.Contains(err.Error(), "setting ORT API base"):
		// The library is unloaded again, so only its file name shows the version.
		if real, err := filepath.EvalSymlinks(path); err == nil && real != path {
			return fmt.Errorf("%s: %s is older than %s", path, filepath.Base(real), minVersion)
		}
		return fmt.Errorf("%s: older than %s", path, minVersion)
	case strings.Contains(err.Error(), "looking up OrtGetApiBase"):
		return fmt.Errorf("%s: not an ONNX Runtime library", path)
	}
	// dlerror's text repeats the path.
	text := err.Error()
	if i := strings.LastIndex(text, path+": "); i >= 0 {
		text = text[i+len(path)+2:]
	}
	return fmt.Errorf("%s: %s", path, oneLine(text))
}

// release undoes one acquire; the last one unloads the library.
func release() error {
	library.mu.Lock()
	defer library.mu.Unlock()
	library.users--
	if library.users > 0 {
		return nil
	}
	if err := ort.DestroyEnvironment(); err != nil {
		return &engine.Error{Op: "close", Backend: backend, Err: err}
	}
	return nil
}

func sameFile(a, b string) bool {
	if a == b {
		return true
	}
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// Find returns the path and version of the library that Open would use, and checks the provider. It loads the library if no engine is open.
// The error is the same as that of Open.
func Find(options engine.Options) (path, version string, err error) {
	path, err = acquire(options.Library)
	if err != nil {
		return "", "", err
	}
	version, path = ort.GetVersion(), loadedFrom(path)
	if options.Provider == engine.CUDA {
		err = findCUDA(options.Device)
	}
	return path, version, errors.Join(err, release())
}

// findCUDA checks whether the CUDA provider can be added to a session.
func findCUDA(device int) error {
	settings, err := ort.NewSessionOptions()
	if err != nil {
		return err
	}
	return errors.Join(appendCUDA(settings, device), settings.Destroy())
}

// loadedFrom returns the full path of a loaded library from the process's memory map, or name if it is not found.
func loadedFrom(name string) string {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil || filepath.IsAbs(name) {
		return name
	}
	for line := range strings.Lines(string(maps)) {
		if i := strings.IndexByte(line, '/'); i >= 0 && strings.HasPrefix(filepath.Base(line[i:]), filepath.Base(name)) {
			return strings.TrimSpace(line[i:])
		}
	}
	return name
}

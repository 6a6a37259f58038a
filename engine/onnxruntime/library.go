package onnxruntime

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	ort "github.com/yalue/onnxruntime_go"

	"github.com/edge-infer/edge-infer/engine"
)

// libraryVariable is the environment variable that names the shared library.
const libraryVariable = "EDGE_INFER_ONNXRUNTIME"

// minVersion is the first ONNX Runtime whose interface covers what onnxruntime_go v1.27 asks for.
const minVersion = "1.24"

// candidates lists the libraries to try, best first. A library that somebody named is the only candidate: another one must not take its
// place unnoticed.
func candidates(named string) []string {
	if named == "" {
		named = os.Getenv(libraryVariable)
	}
	if named != "" {
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

// library is the loaded ONNX Runtime. onnxruntime_go keeps one library and one environment per process in variables of its own, so the
// count of their users has to be per process as well.
var library struct {
	mu    sync.Mutex
	users int
	path  string
}

// acquire loads the library for the first user and counts the others. Every success is to be matched by one release.
func acquire(named string) (path string, err error) {
	library.mu.Lock()
	defer library.mu.Unlock()
	paths := candidates(named)
	if library.users > 0 {
		if named != "" && !sameFile(named, library.path) {
			return "", &engine.Error{
				Op: "open", Backend: backend, Kind: engine.ErrUnavailable,
				Message: fmt.Sprintf("%s is loaded already, a process cannot use %s as well", library.path, named),
				Hint:    "name one library for all engines",
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
		Hint: fmt.Sprintf("install ONNX Runtime %s or newer, or name its library with --engine onnxruntime --library FILE or $%s", minVersion,
			libraryVariable),
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
	// Microsoft's builds, since 1.29, otherwise keep an identity and a database in the home directory and report to Microsoft.
	if err := os.Setenv("ORT_DISABLE_TELEMETRY", "1"); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	ort.SetSharedLibraryPath(path)
	runtime.LockOSThread() // the module asks why dlopen failed in a call of its own, and the answer is the thread's
	err := ort.InitializeEnvironment(ort.WithLogLevelFatal())
	runtime.UnlockOSThread()
	switch {
	case err == nil:
		return nil
	case strings.Contains(err.Error(), "setting ORT API base"):
		// The module has unloaded it again, so only its file name can still tell the version.
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

// release gives one acquire back; the last one unloads the library.
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

// Find says which shared library Open would use, where it lies and its version, and tries the provider as well. It loads the library when
// no engine is open. The error is the one that Open would give.
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

// findCUDA tries to add the CUDA provider to settings that nobody uses.
func findCUDA(device int) error {
	settings, err := ort.NewSessionOptions()
	if err != nil {
		return err
	}
	return errors.Join(appendCUDA(settings, device), settings.Destroy())
}

// loadedFrom completes a library name that the loader searched for, from the list of what is mapped into this process.
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

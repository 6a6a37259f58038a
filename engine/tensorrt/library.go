package tensorrt

// #include <stdlib.h>
//
// #include "shim.h"
import "C"

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"unsafe"

	"github.com/edge-infer/edge-infer/engine"
)

// LibraryEnvironment is the environment variable with the path or directory of the TensorRT library.
const LibraryEnvironment = "EDGE_INFER_TENSORRT"

// LibraryOptions selects the shared objects. Empty fields are searched for.
type LibraryOptions struct {
	Path   string `json:"path,omitempty"`   // libnvinfer, or the directory that holds it
	Parser string `json:"parser,omitempty"` // libnvonnxparser; by default the one beside Path
	Plugin string `json:"plugin,omitempty"` // libnvinfer_plugin, likewise
}

// Version is a TensorRT version. Number is the library's own encoding: 8601, 100300.
type Version struct {
	Number                     int
	Major, Minor, Patch, Build int
}

// String returns 10.3.0, or 10.3.0.30 if the build number is known.
func (v Version) String() string {
	text := fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Patch)
	if v.Build > 0 {
		text += fmt.Sprintf(".%d", v.Build)
	}
	return text
}

// HasOptimizationLevels reports whether the builder of this version has optimization levels.
func (v Version) HasOptimizationLevels() bool { return v.Number >= 8600 }

// Library is a loaded TensorRT. It stays loaded until the process ends; its methods may be called from any goroutine.
type Library struct {
	Version Version
	Path    string
	// Builder is false for the lean and dispatch runtimes, which only run plans. Parser and Plugin are false if the ONNX parser or the
	// plugins are missing; MissingReason is then the loader's message.
	Builder, Parser, Plugin bool
	ParserPath, PluginPath  string
	MissingReason           string

	handle *C.ei_library
}

// RejectedLibrary is a library that could not be used.
type RejectedLibrary struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// OpenLibrary loads the first usable TensorRT of the search order: the given path, $EDGE_INFER_TENSORRT, the loader's own search, Python
// packages, and the directories of JetPack and NVIDIA's archives. The CUDA driver must be open (cuda.Open). If there is none, it returns
// engine.ErrUnavailable with the reason of each attempt.
func OpenLibrary(options LibraryOptions) (*Library, error) {
	library, attempts := Search(options)
	if library != nil {
		return library, nil
	}
	var reasons []string
	for _, a := range attempts {
		if !slices.Contains(reasons, a.Reason) {
			reasons = append(reasons, a.Reason)
		}
	}
	return nil, newError("open", engine.ErrUnavailable,
		"install TensorRT (on a Jetson: apt install nvidia-jetpack) or set "+LibraryEnvironment+" to its directory",
		"no usable TensorRT library: %s", strings.Join(reasons, "; "))
}

// Search is like OpenLibrary and also returns the libraries that were rejected. The library is nil if none is usable.
func Search(options LibraryOptions) (*Library, []RejectedLibrary) {
	return search(options, searchPaths(options.Path, os.Getenv))
}

func search(options LibraryOptions, paths []string) (*Library, []RejectedLibrary) {
	var attempts []RejectedLibrary
	for _, path := range paths {
		library, err := load(path, options)
		if err == nil {
			return library, attempts
		}
		attempts = append(attempts, RejectedLibrary{Path: path, Reason: reason(err)})
	}
	return nil, attempts
}

func reason(err error) string {
	var e *engine.Error
	if errors.As(err, &e) {
		return e.Message
	}
	return err.Error()
}

// SearchPaths returns the search order of Search: file names for the loader's own search, and paths.
func SearchPaths(options LibraryOptions) []string { return searchPaths(options.Path, os.Getenv) }

// Load loads the library at one path of SearchPaths. If that fails, attempt contains the reason.
func Load(path string, options LibraryOptions) (library *Library, attempt RejectedLibrary) {
	library, err := load(path, options)
	if err != nil {
		return nil, RejectedLibrary{Path: path, Reason: reason(err)}
	}
	return library, RejectedLibrary{}
}

// names are tried newest first; the unversioned one exists if the development package is installed.
var names = [...]string{"libnvinfer.so.11", "libnvinfer.so.10", "libnvinfer.so.8", "libnvinfer.so"}

// leanNames can run plans but not build them, so they come last.
var leanNames = [...]string{"libnvinfer_lean.so.11", "libnvinfer_lean.so.10", "libnvinfer_lean.so.8"}

// searchPaths returns the paths to try in order. A given path or the environment variable ends the search.
func searchPaths(given string, environment func(string) string) []string {
	if given == "" {
		given = environment(LibraryEnvironment)
	}
	if given != "" {
		if info, err := os.Stat(given); err == nil && info.IsDir() {
			return inDir(given)
		}
		return []string{given}
	}
	paths := slices.Clone(names[:])
	dirs := []string{
		"/usr/lib/python3*/dist-packages", "/usr/lib/python3*/site-packages", "/usr/local/lib/python3*/dist-packages",
		"/usr/local/lib/python3*/site-packages",
	}
	if home := environment("HOME"); home != "" {
		dirs = append(dirs, home+"/.local/lib/python3*/site-packages")
	}
	if venv := environment("VIRTUAL_ENV"); venv != "" {
		dirs = append([]string{venv + "/lib/python3*/site-packages"}, dirs...)
	}
	for _, dir := range dirs {
		for _, name := range []string{"/tensorrt*libs/", "/tensorrt/"} {
			paths = append(paths, newestFirst(dir+name+"libnvinfer.so*")...)
		}
	}
	machine := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	for _, dir := range []string{
		"/usr/lib/" + machine + "-linux-gnu", "/usr/local/tensorrt/lib", "/usr/local/TensorRT*/lib", "/opt/tensorrt/lib",
		"/usr/local/cuda/lib64", "/usr/src/tensorrt/lib",
	} {
		paths = append(paths, newestFirst(dir+"/libnvinfer.so*")...)
	}
	return append(paths, leanNames[:]...)
}

// inDir lists the libraries of one directory, or the plain name in it if there is none, so that the loader's message names it.
func inDir(dir string) []string {
	var paths []string
	for _, name := range append(slices.Clone(names[:]), leanNames[:]...) {
		if path := filepath.Join(dir, name); exists(path) {
			paths = append(paths, path)
		}
	}
	if len(paths) == 0 {
		paths = []string{filepath.Join(dir, "libnvinfer.so")}
	}
	return paths
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// newestFirst expands a pattern, newest version first; the shortest name of a version comes first because it is the soname.
func newestFirst(pattern string) []string {
	found, _ := filepath.Glob(pattern) // the only error is a malformed pattern
	major := func(path string) int {
		n := 0
		_, suffix, _ := strings.Cut(filepath.Base(path), ".so")
		_, _ = fmt.Sscanf(suffix, ".%d", &n) // without a number it stays 0 and comes last
		return n
	}
	slices.SortFunc(found, func(a, b string) int {
		if d := major(b) - major(a); d != 0 {
			return d
		}
		return len(a) - len(b)
	})
	return found
}

// load opens one file.
func load(path string, options LibraryOptions) (*Library, error) {
	c := [3]*C.char{C.CString(path), C.CString(options.Parser), C.CString(options.Plugin)}
	defer func() {
		for _, text := range c {
			C.free(unsafe.Pointer(text))
		}
	}()
	var version C.ei_version
	var e C.ei_error
	why := (*C.char)(C.calloc(1, 1024))
	defer C.free(unsafe.Pointer(why))
	l := &Library{}
	if C.ei_library_open(c[0], c[1], c[2], 3, &l.handle, &version, why, 1024, &e) != 0 {
		return nil, shimError("open", &e)
	}
	l.Version = Version{
		Number: int(version.number), Major: int(version.major), Minor: int(version.minor), Patch: int(version.patch), Build: int(version.build),
	}
	l.Path, l.ParserPath, l.PluginPath = C.GoString(&version.path[0]), C.GoString(&version.parser_path[0]), C.GoString(&version.plugin_path[0])
	l.Builder, l.Parser, l.Plugin = version.builder != 0, version.parser != 0, version.plugin != 0
	l.MissingReason = C.GoString(why)
	return l, nil
}

// Drain writes TensorRT's messages since the last call to the log: errors and warnings with their level, all others at debug level.
func (l *Library) Drain(log *slog.Logger) {
	const size = 32 << 10
	text := (*C.char)(C.malloc(size))
	defer C.free(unsafe.Pointer(text))
	for {
		var lost C.uint64_t
		n := int(C.ei_library_log(l.handle, text, size, &lost))
		if lost > 0 {
			log.Warn("TensorRT messages dropped", "count", uint64(lost))
		}
		if n == 0 {
			return
		}
		for line := range strings.Lines(C.GoStringN(text, C.int(n))) {
			severity, message, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
			level := slog.LevelDebug
			switch severity {
			case "0", "1":
				level = slog.LevelError
			case "2":
				level = slog.LevelWarn
			}
			log.Log(context.Background(), level, message, "source", "TensorRT")
		}
	}
}

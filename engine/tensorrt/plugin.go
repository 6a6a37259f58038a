package tensorrt

// #include <stdlib.h>
//
// #include "shim.h"
import "C"

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"unsafe"

	"github.com/edge-infer/edge-infer/engine"
)

// PluginFacts describes a plugin that a plan was built with. The plan does not contain it.
type PluginFacts struct {
	Name   string `json:"name"` // of the file
	SHA256 string `json:"sha256"`
}

// LoadPlugins loads shared objects that register further operators, before parsing a model or opening a plan that uses them. Files that
// every user may write are rejected, because they are code; files of another user cause a warning on log, which may be nil. They stay
// loaded until the process ends; loading one again has no effect.
func (l *Library) LoadPlugins(paths []string, log *slog.Logger) ([]PluginFacts, error) {
	var all []PluginFacts
	for _, path := range paths {
		path, err := filepath.Abs(path) // the loader searches other directories for a bare name
		if err != nil {
			return nil, fmt.Errorf("plugin: %w", err)
		}
		warning, err := checkCodeFile("plugin", path, "install it again")
		if err != nil {
			return nil, noPlugin(path, err)
		}
		if warning != "" && log != nil {
			log.Warn("plugin file is owned by another user", "warning", warning)
		}
		facts, err := readPlugin(path)
		if err != nil {
			return nil, err
		}
		if err := l.loadPlugin(path); err != nil {
			return nil, err
		}
		all = append(all, facts)
	}
	return all, nil
}

func (l *Library) loadPlugin(path string) error {
	c := C.CString(path)
	defer C.free(unsafe.Pointer(c))
	var e C.ei_error
	if C.ei_library_plugin(l.handle, c, &e) == 0 {
		return nil
	}
	err := shimError("open", &e)
	if e.code == C.EI_UNSUPPORTED {
		err.Hint = fmt.Sprintf("build the plugin against the headers of TensorRT %s", l.Version)
	}
	return err
}

// readPlugin hashes the file and checks that it is a shared object for this machine; the loader reports others as missing files.
func readPlugin(path string) (PluginFacts, error) {
	file, err := os.Open(path)
	if err != nil {
		return PluginFacts{}, noPlugin(path, err)
	}
	defer file.Close()
	var head [20]byte
	if _, err := io.ReadFull(file, head[:]); err != nil || string(head[:4]) != "\x7fELF" {
		return PluginFacts{}, newError("open", engine.ErrUnsupported, "name the .so file", "plugin %s is not a shared object", path)
	}
	const x86, arm = 62, 183 // e_machine of elf(5)
	machine := binary.LittleEndian.Uint16(head[18:])
	if machine != map[string]uint16{"amd64": x86, "arm64": arm}[runtime.GOARCH] {
		return PluginFacts{}, newError("open", engine.ErrUnsupported, "build it for "+runtime.GOARCH,
			"plugin %s is for another processor architecture", path)
	}
	h := sha256.New()
	h.Write(head[:])
	if _, err := io.Copy(h, file); err != nil {
		return PluginFacts{}, noPlugin(path, err)
	}
	return PluginFacts{Name: filepath.Base(path), SHA256: hex.EncodeToString(h.Sum(nil))}, nil
}

func noPlugin(path string, err error) error {
	if e := (*engine.Error)(nil); errors.As(err, &e) {
		return err
	}
	return &engine.Error{Op: "open", Backend: Name, Kind: engine.ErrUnavailable, Message: "plugin " + path, Err: err}
}

// missingPlugin returns an error if a plugin of the plan is not loaded. Another build with the same name causes a warning only, because it
// may be compatible.
func missingPlugin(plan, loaded []PluginFacts, log *slog.Logger) error {
	for _, p := range plan {
		switch {
		case slices.ContainsFunc(loaded, func(l PluginFacts) bool { return l.SHA256 == p.SHA256 }):
		case slices.ContainsFunc(loaded, func(l PluginFacts) bool { return l.Name == p.Name }):
			log.Warn("the plan was built with another build of this plugin", "plugin", p.Name, "sha256", p.SHA256)
		default:
			return newError("open", engine.ErrPlanMismatch, "give it with --plugin "+p.Name,
				"the plan was built with plugin %s, which is not loaded", p.Name)
		}
	}
	return nil
}

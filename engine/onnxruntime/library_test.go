package onnxruntime_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/enginetest"
	"github.com/edge-infer/edge-infer/engine/onnxruntime"
	"github.com/edge-infer/edge-infer/internal/testtool"
)

// library builds a shared library from C.
func library(t *testing.T, name, source string) string {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "library.c"), []byte(source), 0o600))
	path := filepath.Join(dir, name)
	output, err := exec.Command(testtool.Program(t, "cc"), "-shared", "-fPIC", "-o", path, filepath.Join(dir, "library.c")).CombinedOutput()
	require.NoError(t, err, "%s", output)
	return path
}

const oldLibrary = `
#include <stddef.h>
static const void *api(unsigned version) { return version <= 20 ? "" : NULL; }
static const char *version(void) { return "1.20.1"; }
static const struct { const void *(*api)(unsigned); const char *(*version)(void); } base = {api, version};
const void *OrtGetApiBase(void) { return &base; }
`

func TestUnusableLibraries(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text.so")
	require.NoError(t, os.WriteFile(text, []byte("no library"), 0o600))
	missing := filepath.Join(t.TempDir(), "missing.so")
	other := library(t, "other.so", "int other;")
	old := library(t, "libonnxruntime.so.1.20.1", oldLibrary)
	oldLink := filepath.Join(t.TempDir(), "old.so")
	require.NoError(t, os.Symlink(old, oldLink))
	const hint = " (pip install --target ort 'onnxruntime>=1.24' && export EDGE_INFER_ONNXRUNTIME=$PWD/ort/onnxruntime/capi; packages of " +
		"edge-infer contain it)"
	for _, test := range []struct{ path, err string }{
		{missing, missing + ": no such file"},
		{text, text + ": file too short"},
		{other, other + ": not an ONNX Runtime library"},
		{old, old + ": older than 1.24"},
		{oldLink, oldLink + ": libonnxruntime.so.1.20.1 is older than 1.24"},
		{"libno-such-onnxruntime.so", "libno-such-onnxruntime.so: cannot open shared object file: No such file or directory"},
	} {
		t.Run(filepath.Base(test.path), func(t *testing.T) {
			check := func(err error) {
				require.EqualError(t, err, "onnxruntime open: no usable libonnxruntime, tried "+test.err+hint)
				require.ErrorIs(t, err, engine.ErrUnavailable)
			}
			options := enginetest.Network(t, "image")
			options.Library = test.path
			_, err := onnxruntime.Open(options)
			check(err)
			_, _, err = onnxruntime.Find(options)
			check(err)
			t.Setenv("EDGE_INFER_ONNXRUNTIME", test.path)
			_, err = onnxruntime.Open(enginetest.Network(t, "image"))
			check(err)
		})
	}
}

func TestLibraryBesideTheProgram(t *testing.T) {
	real := os.Getenv("EDGE_INFER_ONNXRUNTIME")
	if real == "" {
		t.Skip("EDGE_INFER_ONNXRUNTIME is not set")
	}
	t.Setenv("EDGE_INFER_ONNXRUNTIME", "")
	executable, err := os.Executable()
	require.NoError(t, err)
	for _, place := range []string{"libonnxruntime.so.1", "libonnxruntime.so", "../lib/edge-infer/libonnxruntime.so.1"} {
		link := filepath.Join(filepath.Dir(executable), place)
		require.NoError(t, os.MkdirAll(filepath.Dir(link), 0o750))
		require.NoError(t, os.Symlink(real, link))
		t.Cleanup(func() { _ = os.Remove(link) })
		path, version, err := onnxruntime.Find(engine.Options{})
		require.NoError(t, err)
		assert.Equal(t, link, path)
		assert.NotEmpty(t, version)
		e, err := onnxruntime.Open(enginetest.Network(t, "image"))
		require.NoError(t, err)
		assert.Equal(t, version, e.Model().BackendVersion)
		require.NoError(t, e.Close())
		require.NoError(t, os.Remove(link))
	}
}

// A library once loaded is found by its name for good, so a process of its own looks for one where there is none.
func TestNoLibrary(t *testing.T) {
	const child = "EDGE_INFER_TEST_NO_LIBRARY"
	if os.Getenv(child) == "" {
		command := exec.Command(os.Args[0], "-test.run=^TestNoLibrary$", "-test.v")
		command.Env = append(os.Environ(), child+"=1", "EDGE_INFER_ONNXRUNTIME=")
		output, err := command.CombinedOutput()
		require.NoError(t, err, "%s", output)
		return
	}
	_, err := onnxruntime.Open(enginetest.Network(t, "image"))
	if err == nil {
		t.Skip("this system has an ONNX Runtime of its own")
	}
	executable, executableErr := os.Executable()
	require.NoError(t, executableErr)
	require.ErrorIs(t, err, engine.ErrUnavailable)
	for _, path := range []string{
		filepath.Join(filepath.Dir(executable), "libonnxruntime.so.1") + ": no such file", "/lib/edge-infer/libonnxruntime.so: no such file",
		"; libonnxruntime.so.1: cannot open", "; libonnxruntime.so: cannot open",
	} {
		assert.ErrorContains(t, err, path)
	}
	assert.NotContains(t, err.Error(), "\n")
}

func TestOneLibraryAProcess(t *testing.T) {
	e, err := onnxruntime.Open(enginetest.Network(t, "image"))
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()) }()
	path, _, err := onnxruntime.Find(engine.Options{})
	require.NoError(t, err)
	_, _, err = onnxruntime.Find(engine.Options{Library: path})
	require.NoError(t, err, "the same file by another name")
	options := enginetest.Network(t, "image")
	options.Library = "/elsewhere/libonnxruntime.so"
	_, err = onnxruntime.Open(options)
	require.ErrorIs(t, err, engine.ErrUnavailable)
	require.ErrorContains(t, err,
		"is already loaded, a process cannot also use /elsewhere/libonnxruntime.so (configure the same library for all engines)")
}

func TestReopen(t *testing.T) {
	for range 10 {
		e, err := onnxruntime.Open(enginetest.Network(t, "image"))
		require.NoError(t, err)
		require.NoError(t, e.Close())
	}
}

// TestNothingIsReported: ONNX Runtime keeps no identity of the machine and nothing to send. It decides that once for a process, so this is
// one of its own.
func TestNothingIsReported(t *testing.T) {
	const marker = "EDGE_INFER_TEST_ALONE"
	if os.Getenv(marker) != "" {
		e, err := onnxruntime.Open(enginetest.Network(t, "image"))
		require.NoError(t, err)
		require.NoError(t, e.Close())
		return
	}
	home := t.TempDir()
	alone := exec.Command(os.Args[0], "-test.run", "^TestNothingIsReported$")
	alone.Env = append(os.Environ(), marker+"=yes", "HOME="+home, "XDG_CACHE_HOME=")
	output, err := alone.CombinedOutput()
	require.NoError(t, err, "%s", output)
	entries, err := os.ReadDir(home)
	require.NoError(t, err)
	assert.Empty(t, entries)
}

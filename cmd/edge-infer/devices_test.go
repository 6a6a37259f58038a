package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/creack/pty"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/diagnose"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/onvif"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/onvif/onviftest"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
	cudafake "github.com/edge-infer/edge-infer/engine/cuda/fake"
	"github.com/edge-infer/edge-infer/engine/tensorrt"
	"github.com/edge-infer/edge-infer/engine/tensorrt/fake"
)

// devicesOf runs the command and gives its document and its text.
func devicesOf(t *testing.T, environment []string, args ...string) (diagnose.Devices, string) {
	output := programtest.OutputWith(t, environment, append([]string{"devices", "--json"}, args...)...)
	var found diagnose.Devices
	require.NoError(t, json.Unmarshal(output, &found))
	var text bytes.Buffer
	require.NoError(t, found.Print(&text))
	return found, text.String()
}

func TestDevices(t *testing.T) {
	t.Parallel()
	environment, _ := programtest.FakeMachine(t, 100300)
	calls := filepath.Join(t.TempDir(), "calls")
	server := append(environment, "FAKE_CUDA=devices=2,capability=90,integrated=0", "FAKE_TRT_LOG="+calls)
	found, text := devicesOf(t, server)
	require.Len(t, found.GPUs, 2)
	assert.Equal(t, "Fake GPU 1", found.GPUs[1].Name)
	assert.Equal(t, "images read in mapped memory, tensors copied because the GPU has its own memory", found.GPUs[1].MemoryUse)
	require.Len(t, found.TensorRT, 1)
	library := found.TensorRT[0]
	assert.Equal(t, "10.3.0.30", library.Version)
	assert.True(t, library.Builder)
	assert.Equal(t, programtest.FakeTensorRT(t, 100300), library.Path)
	assert.NotEmpty(t, library.Parser)
	assert.Contains(t, library.Missing, "libnvinfer_plugin.so.10: cannot open shared object file")
	assert.Equal(t, []string{"fp32", "fp16", "int8", "bf16", "fp8"}, library.Offers[1].Precisions)
	assert.Equal(t, tensorrt.Capabilities{Precisions: library.Offers[0].Precisions}, library.Offers[0],
		"nobody was asked about cores that cannot be there")
	assert.NoFileExists(t, calls, "a GPU of a machine's own needs no runtime and no builder to be described")
	assert.True(t, found.Backends[0].Chosen)
	assert.Equal(t, tensorrt.Name, found.Backends[0].Engine)
	assert.Contains(t, text, "GPU 1   ")
	assert.Contains(t, text, "fp32 fp16 int8 bf16 fp8")
	assert.Contains(t, text, "by compute capability; DLA cores: 0")

	found, text = devicesOf(t, server, "--probe")
	assert.True(t, found.TensorRT[0].Offers[1].FromBuilder)
	assert.Contains(t, text, "by the builder; DLA cores: 2")

	// A Jetson's cores are the runtime's to tell.
	jetson := append(environment, "FAKE_CUDA=capability=87,integrated=1")
	_, text = devicesOf(t, jetson)
	assert.Contains(t, text, "fp32 fp16 int8 bf16 by compute capability; DLA cores: 2")
	found, text = devicesOf(t, append(jetson, "FAKE_TRT=runtime"))
	assert.Equal(t, -1, found.TensorRT[0].Offers[0].DLACores)
	assert.Contains(t, text, "DLA cores: unknown: tensorrt describe: no TensorRT runtime: createInferRuntime: Error Code 6")
}

// A library that ends its process is a line, and what comes after it is looked at all the same.
func TestDevicesSurvivesItsLibraries(t *testing.T) {
	t.Parallel()
	environment, _ := programtest.FakeMachine(t, 100300)
	dir := t.TempDir()
	source := filepath.Join(dir, "crash.c")
	require.NoError(t, os.WriteFile(source,
		[]byte("#include <stdlib.h>\n__attribute__((constructor)) static void crash(void) { abort(); }\n"), 0o600))
	crash, err := cudafake.Compile(filepath.Join(dir, "libnvinfer.so.11"), source)
	require.NoError(t, err)
	tables, err := filepath.Abs("../../engine/tensorrt")
	require.NoError(t, err)
	lean, err := fake.Build(dir, fake.Options{Version: 100300, Lean: true, Tables: tables})
	require.NoError(t, err)
	found, text := devicesOf(t, environment, "--library", dir)
	require.Equal(t, []tensorrt.RejectedLibrary{{Path: crash, Reason: "crashes: abort (SIGABRT)"}}, found.Refused)
	require.Len(t, found.TensorRT, 1)
	assert.Equal(t, lean, found.TensorRT[0].Path)
	assert.False(t, found.TensorRT[0].Builder)
	assert.Contains(t, text, "lean: runs plans, cannot build them")
	assert.Equal(t, "the library crashes: abort (SIGABRT)", found.Backends[0].Reason)
	assert.Equal(t, "onnxruntime on the CPU", found.Backends[2].Title)
	assert.True(t, found.Backends[2].Chosen)
	assert.Contains(t, text, crash+": crashes: abort (SIGABRT)\n")
}

func TestDevicesWithoutGPU(t *testing.T) {
	t.Parallel()
	found, text := devicesOf(t, []string{"EDGE_INFER_LIBCUDA=/none/libcuda.so.1"})
	assert.Contains(t, found.NoGPU, "/none/libcuda.so.1: cannot open shared object file")
	assert.NotEmpty(t, found.Hint)
	assert.Contains(t, text, "GPU                     no  ")
	assert.Contains(t, text, "onnxruntime on the CPU")
	assert.False(t, found.Backends[0].Usable)
}

// TestDiscover: what is printed of an ONVIF camera is a configuration that works with the variables which the command reads too.
func TestDiscover(t *testing.T) {
	t.Parallel()
	camera := &onviftest.Camera{User: "viewer", Password: "p@ss/word", Digest: true}
	camera.Start()
	t.Cleanup(camera.Close)
	login := []string{"CAMERA_USER=viewer", "CAMERA_PASSWORD=p@ss/word"}
	output := programtest.OutputWith(t, login, "devices", "--discover", camera.Host())
	assert.NotContains(t, string(output), "p@ss")
	file := filepath.Join(t.TempDir(), "edge-infer.yaml")
	require.NoError(t, os.WriteFile(file, append([]byte("model: {path: demo}\n"), output...), 0o600))
	shown := programtest.OutputWith(t, login, "config", "show", "--config", file)
	assert.Contains(t, string(shown), "@127.0.0.1:554/sub?a=***&b=***", "values of a query may be secrets")

	var found onvif.Result
	require.NoError(t, json.Unmarshal(programtest.OutputWith(t, login, "devices", "--discover", "--json", camera.Host()), &found))
	require.Len(t, found.Cameras, 1)
	assert.Len(t, found.Cameras[0].Profiles, 2)

	refused := programtest.Command(t, "devices", "--discover", camera.Host())
	text, err := refused.CombinedOutput()
	require.Error(t, err)
	assert.Contains(t, string(text), "it requires a user name and password (set CAMERA_USER and CAMERA_PASSWORD)\n")
	assert.Contains(t, string(text), "no camera has given a stream")

	asking := programtest.Command(t, "devices", "--discover", camera.Host())
	terminal, err := pty.Start(asking)
	require.NoError(t, err)
	for _, answer := range []string{"viewer\n", "p@ss/word\n"} {
		_, err = terminal.WriteString(answer)
		require.NoError(t, err)
	}
	text, _ = io.ReadAll(terminal) // a closed terminal is an error
	require.NoError(t, asking.Wait(), "%s", text)
	assert.Contains(t, string(text), "@127.0.0.1:554/sub?a=1&b=2")
	require.NoError(t, terminal.Close())
}

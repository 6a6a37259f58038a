package cross

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/engine"
	cudafake "github.com/edge-infer/edge-infer/engine/cuda/fake"
	"github.com/edge-infer/edge-infer/engine/tensorrt/fake"
)

// sysroot and onnxruntime are what the emulated arm64 machine has besides the release binary.
const (
	sysroot     = "../.deps/release/sysroot-arm64"
	onnxruntime = "../.deps/release/onnxruntime-arm64/libonnxruntime.so"
)

// machine is an arm64 machine: qemu-user on this one.
type machine struct {
	emulate, sysroot string
	directory        string // in which programs run; empty: this one
	environment      []string
}

// unable is the exit status of emulate where the kernel does not let it.
const unable = 77

// newMachine skips the test where there is no release binary or where arm64 programs cannot run.
func newMachine(t *testing.T, environment ...string) *machine {
	path := released(t, "arm64")
	home := t.TempDir()
	m := &machine{
		emulate: absolute(t, "emulate"), sysroot: absolute(t, sysroot),
		environment: append([]string{"HOME=" + home, "XDG_CACHE_HOME=" + filepath.Join(home, "cache")}, environment...),
	}
	var exit *exec.ExitError
	if _, stderr, err := m.run(t, path, "version"); errors.As(err, &exit) && exit.ExitCode() == unable {
		t.Skip(stderr)
	}
	return m
}

// run starts a program there, waits for it and returns what it wrote.
func (m *machine) run(t *testing.T, program string, arguments ...string) (stdout, stderr string, err error) {
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, m.emulate, append([]string{m.sysroot, program}, arguments...)...)
	command.Dir = m.directory
	var out, log bytes.Buffer
	command.Stdout, command.Stderr = &out, &log
	command.Env = append(os.Environ(), m.environment...)
	err = command.Run()
	return out.String(), log.String(), err
}

// must is run for a program that is to succeed.
func (m *machine) must(t *testing.T, program string, arguments ...string) string {
	stdout, stderr, err := m.run(t, program, arguments...)
	require.NoError(t, err, "%s: %s%s", strings.Join(arguments, " "), stdout, stderr)
	return stdout
}

// long skips a test of minutes in short runs, which is what CI does.
func long(t *testing.T) {
	if testing.Short() {
		t.Skip("takes minutes; make release-check-all runs it")
	}
}

func absolute(t *testing.T, path string) string {
	path, err := filepath.Abs(path)
	require.NoError(t, err)
	return path
}

func TestEmulated(t *testing.T) {
	t.Parallel() // with TestEmulatedContract: neither uses more than half of two cores for long
	path := released(t, "arm64")
	t.Run("version", func(t *testing.T) {
		require.Contains(t, newMachine(t).must(t, path, "version"), " linux/arm64\n")
	})
	t.Run("nothing installed", func(t *testing.T) {
		_, stderr, err := newMachine(t, "EDGE_INFER_ONNXRUNTIME=").run(t, path, "--camera", "demo", "--frames", "1", "--mqtt", "off")
		require.Error(t, err)
		require.Contains(t, stderr, "no usable libonnxruntime")
		require.Contains(t, stderr, "pip install --target ort 'onnxruntime")
	})
	t.Run("devices", func(t *testing.T) {
		var report map[string]any
		text := newMachine(t, "EDGE_INFER_ONNXRUNTIME="+absolute(t, onnxruntime)).must(t, path, "devices", "--json")
		require.NoError(t, json.Unmarshal([]byte(text), &report))
		require.Contains(t, report, "backends")
	})
	t.Run("doctor", func(t *testing.T) {
		// The emulated machine has no clock that is set and perhaps no room, so the status of the whole says nothing.
		stdout, stderr, _ := newMachine(t, "EDGE_INFER_ONNXRUNTIME="+absolute(t, onnxruntime)).run(t, path, "doctor", "--json")
		var report struct {
			Checks []struct{ Check, Status, Detail string }
		}
		require.NoError(t, json.Unmarshal([]byte(stdout), &report), "%s%s", stdout, stderr)
		found := map[string]string{}
		for _, check := range report.Checks {
			found[check.Check] = check.Status + " " + check.Detail
		}
		require.Contains(t, found["machine"], "OK linux/arm64")
		require.Contains(t, found["ONNX Runtime"], "OK "+absolute(t, onnxruntime))
		require.Contains(t, found["model"], "OK demo on onnxruntime")
		t.Log(found["model"])
	})
	t.Run("demo", func(t *testing.T) {
		// Small images and few: an emulated core would be busy drawing what no one looks at. The network takes 416 x 416 from any camera.
		lines := strings.Split(newMachine(t, "EDGE_INFER_ONNXRUNTIME="+absolute(t, onnxruntime)).must(t, path,
			"--camera", "demo?width=320&height=180&fps=2", "--frames", "50", "--mqtt", "off", "--json"), "\n")
		frames, boxes := 0, 0
		for _, line := range lines {
			var frame struct {
				Camera     string
				Detections []struct{ Label string }
			}
			if line != "" && json.Unmarshal([]byte(line), &frame) == nil && frame.Camera != "" {
				frames++
				boxes += len(frame.Detections)
			}
		}
		require.Equal(t, 50, frames)
		require.Greater(t, boxes, 50)
		t.Logf("%d frames, %d boxes", frames, boxes)
	})
}

// TestEmulatedTensorRT lets the release binary build a plan and detect on an image with libraries that stand in for a Jetson's: a CUDA
// driver and a TensorRT of each ABI family, compiled for arm64, the project's own kernels on the CPU.
func TestEmulatedTensorRT(t *testing.T) {
	long(t)
	path := released(t, "arm64")
	for name, value := range compilers(t) {
		t.Setenv(name, value)
	}
	dir := t.TempDir()
	driver, err := cudafake.Build(dir, 0)
	require.NoError(t, err)
	kernels, err := cudafake.Compile(filepath.Join(dir, "kernels.so"), "-x", "c++", "-std=c++17", "../engine/preprocess/kernels.cu",
		"-lstdc++", "-lm")
	require.NoError(t, err)
	m := newMachine(t, "EDGE_INFER_LIBCUDA="+driver, "FAKE_CUDA_KERNELS="+kernels)
	m.must(t, path, "dataset", "--out", filepath.Join(dir, "parts"), "--count", "1")
	images, err := filepath.Glob(filepath.Join(dir, "parts", "images", "*"))
	require.NoError(t, err)
	require.Len(t, images, 1)
	labels := filepath.Join(dir, "labels")
	require.NoError(t, os.WriteFile(labels, []byte("left\nright\n"), 0o600))
	model := filepath.Join(dir, "head.fake")
	require.NoError(t, os.WriteFile(model, fake.Model{
		Network: "head",
		Inputs:  []engine.TensorInfo{{Name: "images", Type: engine.Float32, Shape: []int64{1, 3, 64, 64}}},
		Outputs: []engine.TensorInfo{{Name: "output0", Type: engine.Float32, Shape: []int64{1, 6, 84}}},
	}.Bytes(), 0o600))
	for _, version := range []int{8502, 8602, 100300, 101303, 101602, 110100} {
		t.Run(fmt.Sprint(version), func(t *testing.T) {
			place := t.TempDir()
			built, err := fake.Build(place, fake.Options{Version: version, Tables: absolute(t, "../engine/tensorrt")})
			require.NoError(t, err)
			output := m.must(t, path, "infer", images[0], "--engine", "tensorrt", "--library", built, "--model", model, "--labels", labels,
				"--layout", "yolov8", "--json")
			var result struct {
				Detections []struct {
					Label string
					Score float64
					Box   [4]float64
				}
			}
			require.NoError(t, json.Unmarshal([]byte(output), &result), output)
			require.NotEmpty(t, result.Detections)
			// The network puts boxes of 8 pixels at 10, 11, ... of 64 whatever it sees. The image of 1280 x 720 lies at 14 to 50 of the 64
			// rows, so the first box is outside and the second one, of the second label, has one row inside.
			best := result.Detections[0]
			require.Equal(t, "right", best.Label)
			require.InDelta(t, 0.99, best.Score, 1e-3)
			require.InDeltaSlice(t, []float64{140, 0, 300, 20}, best.Box[:], 0.01)
		})
	}
}

// TestEmulatedC runs the C code that is different on arm64: the trampolines to the CUDA driver, and the letterbox's NEON kernels, each of
// which is compared with its plain twin.
func TestEmulatedC(t *testing.T) {
	long(t)
	for name, value := range compilers(t) {
		t.Setenv(name, value)
	}
	dir := t.TempDir()
	m := newMachine(t)
	driver, err := cudafake.Build(dir, 0)
	require.NoError(t, err)
	compile := func(name string, arguments ...string) string {
		program := filepath.Join(dir, name)
		output, err := exec.Command(os.Getenv("CC"), append([]string{"-std=gnu11", "-o", program}, arguments...)...).CombinedOutput()
		require.NoError(t, err, "%s", output)
		return program
	}
	m.must(t, compile("exercise", "-O1", "-I../engine/cuda", "-I../engine/cuda/trampoline", "../engine/cuda/testdata/exercise.c",
		"../engine/cuda/trampoline/driver.c", "../engine/cuda/trampoline/stubs.S", "-ldl", "-lpthread"), driver)
	sources, err := filepath.Glob("../engine/preprocess/*.c")
	require.NoError(t, err)
	check := compile("check", append(sources, "-O3", "-ffp-contract=off", "-I../engine/preprocess",
		"../engine/preprocess/testdata/check.c", "-lm")...)
	require.Equal(t, "neon", strings.TrimSpace(m.must(t, check, "1000", "1")))
}

// TestEmulatedContract runs the contract that every engine fulfils on the arm64 build of the TensorRT binding, with the stand-ins of
// TestEmulatedTensorRT: dimensions travel by value in registers and large results through a hidden pointer, otherwise than on x86-64.
func TestEmulatedContract(t *testing.T) {
	long(t)
	t.Parallel()
	program := filepath.Join(t.TempDir(), "tensorrt.test")
	m := newMachine(t)
	output, err := exec.Command("./go", "arm64", "test", "-c", "-o", program, "../engine/tensorrt").CombinedOutput()
	require.NoError(t, err, "%s", output)
	for name, value := range compilers(t) {
		m.environment = append(m.environment, name+"="+value)
	}
	m.directory = absolute(t, "../engine/tensorrt")
	// Counting heap allocations over hundreds of frames is the same on every machine, and closing during a long request, five times, is slow
	// on an emulated one: once for each release is enough.
	t.Log(m.must(t, program, "-test.run", "^TestContract$", "-test.skip",
		"^TestContract$/././^allocations$|^TestContract$/./^(copies|all_in_place)/^close_with_work_in_flight$"))
}

// TestEmulatedStaticTLS: glibc has 1,664 bytes of static thread-local storage for all libraries that a program opens, and the one that is
// opened last may find none. A library with the name of JetPack's is opened first.
func TestEmulatedStaticTLS(t *testing.T) {
	long(t)
	path := released(t, "arm64")
	for name, value := range compilers(t) {
		t.Setenv(name, value)
	}
	for name, want := range map[string]string{
		"libGLdispatch.so.0": "not an ONNX Runtime library",  // its user was loaded
		"libOther.so.0":      "Platform-specific initializa", // could not be loaded; the rest of the line is left out
	} {
		dir := t.TempDir()
		driver := buildTLS(t, dir, "libcuda.so.1", takenTLS)
		buildTLS(t, dir, name, neededTLS, "-ftls-model=initial-exec")
		source := filepath.Join(dir, "user.c")
		require.NoError(t, os.WriteFile(source, []byte("char *here(void);\nchar *there(void) { return here(); }\n"), 0o600))
		user, err := cudafake.Compile(filepath.Join(dir, "libonnxruntime.so"), source, "-L"+dir, "-Wl,--no-as-needed", "-l:"+name)
		require.NoError(t, err)
		m := newMachine(t, "EDGE_INFER_LIBCUDA="+driver, "EDGE_INFER_ONNXRUNTIME="+user, "LD_LIBRARY_PATH="+dir)
		_, stderr, err := m.run(t, path, "run", "--camera", "demo", "--frames", "1", "--mqtt", "off") // CUDA comes first
		require.Error(t, err)
		require.Contains(t, stderr, want, name)
	}
}

// Bytes of thread-local storage: what a library takes of the static one because there is some (glibc gives 512 at most), and what a library
// needs that cannot do without. There is room for either, not for both; the first one then does without.
const (
	takenTLS  = 400
	neededTLS = 1300
)

// buildTLS compiles a library with thread-local storage of size bytes, in which a driver's cuInit finds no GPU, and returns its path. It
// takes static storage while there is some, as libraries for arm64 do; with -ftls-model=initial-exec it needs it.
func buildTLS(t *testing.T, dir, name string, size int, flags ...string) string {
	source := filepath.Join(dir, name+".c")
	text := fmt.Sprintf("__thread char block[%d] = {1};\nchar *here(void) { return block; }\n"+
		"int cuInit(unsigned flags) { (void)flags; return here()[0] ? 100 : 0; }\n", size)
	require.NoError(t, os.WriteFile(source, []byte(text), 0o600))
	path, err := cudafake.Compile(filepath.Join(dir, name), append([]string{source, "-Wl,-soname," + name}, flags...)...)
	require.NoError(t, err)
	return path
}

// compilers are the variables that make the fakes arm64 libraries.
func compilers(t *testing.T) map[string]string {
	return map[string]string{"RELEASE_ARCH": "arm64", "CC": absolute(t, "cc"), "CXX": absolute(t, "cxx")}
}

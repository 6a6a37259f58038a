package diagnose

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture/source"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/engine/cuda"
	cudafake "github.com/edge-infer/edge-infer/engine/cuda/fake"
	"github.com/edge-infer/edge-infer/engine/isolate"
	"github.com/edge-infer/edge-infer/engine/tensorrt"
	tensorrtfake "github.com/edge-infer/edge-infer/engine/tensorrt/fake"
	"github.com/edge-infer/edge-infer/internal/testtool"
	mqttbroker "github.com/edge-infer/edge-infer/mqtt/broker"
)

// asChild makes the test binary a child process of doctor.
const asChild = "DOCTOR_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(asChild) == "" {
		os.Exit(m.Run())
	}
	out, err := isolate.Answers()
	if err == nil {
		all := runners()
		all[modelJob] = func(_ context.Context, r *request, send func(any)) error {
			send(ok("", "model %s was run", r.Model.Path))
			return nil
		}
		err = serve(context.Background(), os.Stdin, out, all)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// bareMachine returns a Doctor for a machine without driver, libraries, plugins and devices, to which tests add.
func bareMachine(t *testing.T) *Doctor {
	if output, err := exec.Command("ldconfig", "-p").Output(); err == nil &&
		regexp.MustCompile(`libnvinfer\.so|libonnxruntime\.so`).Match(output) {
		t.Skip("this machine has TensorRT or ONNX Runtime in the loader's search path")
	}
	root := t.TempDir()
	t.Setenv(asChild, "1")
	t.Setenv("GORACE", "atexit_sleep_ms=0") // the race detector's wait would be that of every child
	t.Setenv("HOME", root)
	t.Setenv("VIRTUAL_ENV", "")
	t.Setenv("LD_LIBRARY_PATH", "")
	t.Setenv("EDGE_INFER_LIBCUDA", filepath.Join(root, "libcuda.so.1"))
	t.Setenv("EDGE_INFER_TENSORRT", "")
	t.Setenv("EDGE_INFER_ONNXRUNTIME", "")
	t.Setenv("GST_PLUGIN_PATH", "")
	t.Setenv("GST_PLUGIN_SYSTEM_PATH", root)
	c := config.Default()
	c.MQTT.URL = config.Off
	c.Cameras = []config.Camera{{Name: "cam0", URI: "demo?width=320&height=240"}}
	d := &Doctor{
		Config: c, Root: root, Program: []string{os.Args[0]}, Timeout: time.Minute,
		Dirs:         []Dir{{Name: "cache directory", Path: filepath.Join(root, "cache"), Need: 1 << 30, Move: "move it"}},
		Devices:      func() []source.DeviceInfo { return nil },
		Free:         func(string) (int64, error) { return 5 << 30, nil },
		Synchronized: func() (bool, error) { return true, nil },
	}
	put(t, d, "/proc/stat", "cpu  1 2 3 4\ncpu0 1 2 3 4\ncpu1 1 2 3 4\n")
	put(t, d, "/proc/meminfo", "MemTotal: 8388608 kB\nMemAvailable: 4194304 kB\nSwapTotal: 2097152 kB\nSwapFree: 2097152 kB\n")
	return d
}

func put(t *testing.T, d *Doctor, path, content string) {
	t.Helper()
	file := filepath.Join(d.Root, path)
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
	require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
}

var seconds = regexp.MustCompile(`after [0-9.]+ s`)

// printed runs the checks and returns their text, without the machine's directory and times.
func printed(t *testing.T, d *Doctor) (text string, failed int) {
	t.Helper()
	var out strings.Builder
	all := d.Run(t.Context(), func(f Check) { require.NoError(t, f.Print(&out)) })
	text = strings.ReplaceAll(out.String(), d.Root, "ROOT")
	return seconds.ReplaceAllString(text, "after N s"), all.Count(Fail)
}

// lines returns the lines of some checks.
func lines(text string, checks ...string) string {
	var picked strings.Builder
	taken := false
	for line := range strings.Lines(text) {
		if line[0] != ' ' {
			taken = false
			for _, check := range checks {
				taken = taken || strings.HasPrefix(line[6:], check)
			}
		}
		if taken {
			picked.WriteString(line)
		}
	}
	return picked.String()
}

const machineLine = "OK    machine           " + runtime.GOOS + "/" + runtime.GOARCH + ", 2 processors\n"

func TestMachineWithNothing(t *testing.T) {
	d := bareMachine(t)
	text, failed := printed(t, d)
	assert.Equal(t, machineLine+
		`OK    memory            8.0 GiB, 4.0 GiB available, 2.0 GiB swap
OK    clock             synchronized
OK    cache directory   ROOT/cache, 5.0 GiB free
WARN  CUDA driver       ROOT/libcuda.so.1: cannot open shared object file: No such file or directory
                        fix: install the NVIDIA driver, or set EDGE_INFER_LIBCUDA to the path of libcuda.so.1
WARN  TensorRT          not installed
                        fix: on a Jetson: sudo apt install nvidia-jetpack; elsewhere: install TensorRT 8.5 or newer, or set $EDGE_INFER_TENSORRT to its directory
`, text[:strings.Index(text, "WARN  ONNX Runtime")])
	assert.Equal(t, `OK    GStreamer         missing appsink, videoconvert, decodebin, rtspsrc, h264parse and h265parse, avdec_h264; only csi:// and gst: cameras, and RTSP without NVDEC, need them
OK    video device      none; network cameras, files and demo do not need one
OK    camera cam0       320x240 BGR, first image after N s, 30 fps
OK    model             model  was run
OK    MQTT broker       off
`, text[strings.Index(text, "OK    GStreamer"):])
	assert.Regexp(t, `^WARN  ONNX Runtime      not installed
                        fix: pip install --target ort .onnxruntime>=1.24. && export EDGE_INFER_ONNXRUNTIME=\$PWD/ort/onnxruntime/capi; packages of edge-infer contain it
$`, lines(text, "ONNX Runtime"))
	assert.Zero(t, failed)
}

// A library that is nowhere is not installed; any other reason stays as it is.
func TestNotInstalled(t *testing.T) {
	assert.Equal(t, "not installed", withoutDriver("no CUDA driver: libcuda.so.1: cannot open shared object file: No such file or directory"))
	assert.Equal(t, "/usr/lib/libcuda.so.1: wrong ELF class", withoutDriver("no CUDA driver: /usr/lib/libcuda.so.1: wrong ELF class"))
	assert.True(t, nowhere("no usable libonnxruntime, tried /a: no such file; b: cannot open shared object file: No such file or directory"))
	assert.False(t, nowhere("no usable libonnxruntime, tried /a: no such file; b: wrong ELF class"))
	assert.False(t, nowhere("libonnxruntime.so.1.20.1 is older than 1.24"))
}

// What was asked for by name and is not there is a failure.
func TestNamedBackendWithoutLibraries(t *testing.T) {
	d := bareMachine(t)
	d.Config.Engine.Backend = "tensorrt"
	text, failed := printed(t, d)
	assert.Equal(t, 2, failed)
	assert.Contains(t, text, "FAIL  CUDA driver       ROOT/libcuda.so.1: cannot open")
	assert.Contains(t, text, "FAIL  TensorRT          not installed\n")

	d.Config.Engine = config.Engine{Backend: "onnxruntime", Library: "/none.so"}
	text, failed = printed(t, d)
	assert.Equal(t, 1, failed)
	assert.Contains(t, text, "FAIL  ONNX Runtime      no usable libonnxruntime, tried /none.so: no such file\n")
}

// library compiles a libnvinfer from C.
func library(t *testing.T, d *Doctor, source string) {
	t.Helper()
	put(t, d, "library.c", source)
	path, err := cudafake.Compile(filepath.Join(d.Root, "libnvinfer.so.10"), filepath.Join(d.Root, "library.c"))
	require.NoError(t, err)
	t.Setenv("EDGE_INFER_TENSORRT", path)
}

func TestBrokenTensorRT(t *testing.T) {
	const again = "                        fix: reinstall TensorRT, or set another one with $EDGE_INFER_TENSORRT\n"
	for _, test := range []struct {
		name, source, want string
		timeout            time.Duration
	}{
		{
			"crashes", "__attribute__((constructor)) static void f(void) { *(volatile int *)8 = 1; }",
			"crashes: segmentation violation (SIGSEGV)", 0,
		},
		{"aborts", "#include <stdlib.h>\n__attribute__((constructor)) static void f(void) { abort(); }", "crashes: abort (SIGABRT)", 0},
		{
			"is killed", "#include <signal.h>\n__attribute__((constructor)) static void f(void) { raise(SIGKILL); }",
			"crashes: killed, as when memory runs out", 0,
		},
		{
			"ends the program", "#include <stdio.h>\n#include <stdlib.h>\n__attribute__((constructor)) static void f(void) { fputs(\"no licence\\n\", stderr); exit(3); }",
			"ends the process with status 3: no licence", 0,
		},
		{
			"prints", "#include <stdio.h>\n__attribute__((constructor)) static void f(void) { puts(\"{\\\"check\\\":\\\"forged\\\"}\"); }",
			"does not load: ROOT/libnvinfer.so.10: not TensorRT: createInferRuntime_INTERNAL or getInferLibVersion is missing", 0,
		},
		{
			"hangs", "#include <unistd.h>\n__attribute__((constructor)) static void f(void) { for (;;) pause(); }", "no answer in 3s",
			3 * time.Second,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := bareMachine(t)
			if test.timeout > 0 {
				d.Timeout = test.timeout
			}
			library(t, d, test.source)
			d.setDefaults()
			var out strings.Builder
			for _, f := range d.tensorrt(t.Context()) {
				require.NoError(t, f.Print(&out))
			}
			assert.Equal(t, "FAIL  TensorRT          "+test.want+"\n"+again, strings.ReplaceAll(out.String(), d.Root, "ROOT"))
		})
	}
	t.Run("garbage", func(t *testing.T) {
		d := bareMachine(t)
		put(t, d, "libnvinfer.so.10", "garbage")
		t.Setenv("EDGE_INFER_TENSORRT", d.Root)
		text, failed := printed(t, d)
		assert.Equal(t, 1, failed)
		assert.Equal(t, "FAIL  TensorRT          does not load: ROOT/libnvinfer.so.10: file too short\n"+again, lines(text, "TensorRT"))
	})
	t.Run("a library that it needs is missing", func(t *testing.T) {
		d := bareMachine(t)
		put(t, d, "other.c", "int other(void) { return 1; }")
		other, err := cudafake.Compile(filepath.Join(d.Root, "libcudart.so.12"), "-Wl,-soname,libcudart.so.12", filepath.Join(d.Root, "other.c"))
		require.NoError(t, err)
		put(t, d, "library.c", "int other(void);\nint createInferRuntime_INTERNAL(void) { return other(); }")
		path, err := cudafake.Compile(filepath.Join(d.Root, "libnvinfer.so.10"), filepath.Join(d.Root, "library.c"), other)
		require.NoError(t, err)
		require.NoError(t, os.Remove(other))
		t.Setenv("EDGE_INFER_TENSORRT", path)
		text, failed := printed(t, d)
		assert.Equal(t, 1, failed)
		assert.Equal(t, "FAIL  TensorRT          does not load: libcudart.so.12: cannot open shared object file: No such file or directory\n"+again, lines(text, "TensorRT"))
	})
}

// A caller that gives up takes its child with it.
func TestContextEndsTheChild(t *testing.T) {
	d := bareMachine(t)
	mark := filepath.Join(d.Root, "loaded")
	library(t, d, `#include <fcntl.h>
#include <unistd.h>
__attribute__((constructor)) static void f(void) { close(open("`+mark+`", O_CREAT | O_WRONLY, 0600)); for (;;) pause(); }`)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for {
			if _, err := os.Stat(mark); err == nil {
				cancel()
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
	assert.Equal(t, []Check{fail("TensorRT", "reinstall TensorRT, or set another one with $EDGE_INFER_TENSORRT", "context canceled")},
		d.tensorrt(ctx))
}

func TestStubDriver(t *testing.T) {
	d := bareMachine(t)
	path, err := cudafake.Build(d.Root, 0)
	require.NoError(t, err)
	t.Setenv("EDGE_INFER_LIBCUDA", path)
	t.Setenv("EDGE_INFER_LIBNVCUVID", filepath.Join(d.Root, "none"))
	const driver = "OK    CUDA driver       ROOT/libcuda.so.1, CUDA 12.2\n"
	for _, test := range []struct{ settings, want string }{
		{
			"capability=87,integrated=1,memory=8589934592",
			driver + "OK    GPU 0             Fake GPU 0, sm_87, 8.0 GiB, shares the machine's memory\n" +
				"OK    NVDEC             none, RTSP video is decoded in software\n",
		},
		{"devices=2,capability=89,integrated=0,memory=1073741824", driver +
			"OK    GPU 0             Fake GPU 0, sm_89, 1.0 GiB, own memory\nOK    GPU 1             Fake GPU 1, sm_89, 1.0 GiB, own memory\n" +
			`WARN  NVDEC             ROOT/none: cannot open shared object file: No such file or directory; RTSP video is decoded in software
                        fix: install the driver's libnvcuvid; start a container with NVIDIA_DRIVER_CAPABILITIES=compute,utility,video
`},
		{"devices=0", `WARN  CUDA driver       the driver works: no device (100)
                        fix: no NVIDIA GPU is visible: check nvidia-smi and CUDA_VISIBLE_DEVICES; start a container with --gpus all or --runtime nvidia
`},
		{"init=34", `FAIL  CUDA driver       the driver ROOT/libcuda.so.1 does not start: stub library (34)
                        fix: a stub library was loaded: remove the CUDA toolkit's stubs directory from LD_LIBRARY_PATH
`},
		{"init=100", `WARN  CUDA driver       the driver ROOT/libcuda.so.1 does not start: no device (100)
                        fix: no NVIDIA GPU is visible: check nvidia-smi and CUDA_VISIBLE_DEVICES; start a container with --gpus all or --runtime nvidia
`},
	} {
		t.Run(test.settings, func(t *testing.T) {
			t.Setenv("FAKE_CUDA", test.settings)
			d.setDefaults()
			var out strings.Builder
			for _, f := range d.child(t.Context(), "CUDA driver", request{Job: "driver"}, "reboot") {
				require.NoError(t, f.Print(&out))
			}
			assert.Equal(t, test.want, strings.ReplaceAll(out.String(), d.Root, "ROOT"))
		})
	}
}

// TestNVDEC: the GPU's decoder is loaded in the process that checks the driver.
func TestNVDEC(t *testing.T) {
	d := bareMachine(t)
	driver, err := cudafake.Build(d.Root, 0)
	require.NoError(t, err)
	library, err := cudafake.Compile(filepath.Join(d.Root, "libnvcuvid.so.1"), "-std=gnu11", "-fvisibility=hidden",
		"../../../../capture/nvdec/testdata/libnvcuvid.c", driver)
	require.NoError(t, err)
	t.Setenv("EDGE_INFER_LIBCUDA", driver)
	t.Setenv("EDGE_INFER_LIBNVCUVID", library)
	d.setDefaults()
	for settings, want := range map[string]string{
		"": "H.264, H.265 of RTSP cameras", "unsupported": "not on this GPU: RTSP video is decoded in software",
	} {
		t.Setenv("FAKE_NVCUVID", settings)
		checks := d.child(t.Context(), "CUDA driver", request{Job: "driver"}, "reboot")
		assert.Equal(t, ok("NVDEC", "%s", want), checks[len(checks)-1])
	}
}

// A whole machine: driver, TensorRT and parser, all of them stand-ins.
func TestStandInTensorRT(t *testing.T) {
	d := bareMachine(t)
	driver, err := cudafake.Build(d.Root, 0)
	require.NoError(t, err)
	tables, err := filepath.Abs("../../../../engine/tensorrt")
	require.NoError(t, err)
	_, err = tensorrtfake.Build(d.Root, tensorrtfake.Options{Version: 100300, Tables: tables})
	require.NoError(t, err)
	t.Setenv("EDGE_INFER_LIBCUDA", driver)
	t.Setenv("EDGE_INFER_TENSORRT", d.Root)
	t.Setenv("FAKE_CUDA", "capability=87,integrated=1,memory=8589934592")
	plan, err := tensorrt.EncodePlan(tensorrt.PlanFacts{Version: "8.5.2", Architecture: "sm_72"}, []byte("ftrt"))
	require.NoError(t, err)
	put(t, d, "xavier.plan", string(plan))
	d.Config.Model.Path = filepath.Join(d.Root, "xavier.plan")
	text, failed := printed(t, d)
	assert.Equal(t, `OK    CUDA driver       ROOT/libcuda.so.1, CUDA 12.2
OK    GPU 0             Fake GPU 0, sm_87, 8.0 GiB, shares the machine's memory
OK    TensorRT          ROOT/libnvinfer.so.10, version 10.3.0.30
WARN  TensorRT plugins  networks with plugin layers need it: ROOT/libnvinfer_plugin.so.10: cannot open shared object file: No such file or directory
                        fix: install the package of libnvinfer_plugin, in the same version as libnvinfer
OK    ONNX parser       ROOT/libnvonnxparser.so.10
FAIL  engine plan       ROOT/xavier.plan is for sm_72, this GPU is sm_87
                        fix: run edge-infer build on this machine
`, lines(text, "CUDA driver", "GPU 0", "TensorRT", "ONNX parser", "engine plan"))
	assert.Equal(t, 1, failed)

	t.Setenv("FAKE_CUDA", "capability=110")
	text, failed = printed(t, d)
	assert.Contains(t, text, `FAIL  TensorRT and GPU  TensorRT 10.3.0.30 does not support Fake GPU 0 (sm_110)
                        fix: update TensorRT to 10.8 or newer
`)
	assert.Equal(t, 2, failed)
}

func TestTensorRTAndGPU(t *testing.T) {
	for _, test := range []struct {
		major, minor, capability int
		want                     Status
	}{
		{8, 5, 53, OK},
		{8, 5, 72, OK},
		{8, 6, 87, OK},
		{8, 5, 35, Fail},
		{9, 3, 53, Fail},
		{10, 3, 61, Fail},
		{10, 3, 70, OK},
		{10, 5, 72, Fail},
		{10, 5, 75, OK},
		{10, 7, 120, Fail},
		{10, 8, 120, OK},
		{10, 13, 110, OK},
		{11, 1, 72, Fail},
		{11, 1, 87, OK},
	} {
		f := supported(tensorrt.Version{Major: test.major, Minor: test.minor},
			&cuda.Facts{Name: "GPU", Major: test.capability / 10, Minor: test.capability % 10})
		assert.Equal(t, test.want, f.Status, "%+v", test)
	}
}

func TestPlan(t *testing.T) {
	dir := t.TempDir()
	file := func(name string, facts tensorrt.PlanFacts) string {
		data, err := tensorrt.EncodePlan(facts, []byte("ftrt"))
		require.NoError(t, err)
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, data, 0o600))
		return path
	}
	damaged := file("damaged.plan", tensorrt.PlanFacts{Version: "10.3.0"})
	data, err := os.ReadFile(damaged)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(damaged, data[:len(data)-1], 0o600))
	other := filepath.Join(dir, "model.onnx")
	require.NoError(t, os.WriteFile(other, []byte("no plan"), 0o600))
	for _, test := range []struct {
		path string
		want []Check
	}{
		{"", nil},
		{other, nil},
		{filepath.Join(dir, "none.plan"), nil},
		{
			file("fits.plan", tensorrt.PlanFacts{Version: "10.3.0", Architecture: "sm_87"}),
			[]Check{ok("engine plan", "DIR/fits.plan fits TensorRT 10.3.0.30 on sm_87")},
		},
		{
			file("old.plan", tensorrt.PlanFacts{Version: "8.5.2", Architecture: "sm_87"}),
			[]Check{
				warn("engine plan", "run edge-infer build on this machine if it does not load",
					"DIR/old.plan was built by TensorRT 8.5.2, this is 10.3.0.30"),
			},
		},
		{
			damaged, []Check{
				fail("engine plan", "run edge-infer build again",
					"DIR/damaged.plan: checksum mismatch: the plan file is damaged or incomplete"),
			},
		},
	} {
		var found []Check
		r := request{Model: config.Model{Path: test.path}}
		r.plan(tensorrt.Version{Major: 10, Minor: 3, Build: 30}, &cuda.Facts{Major: 8, Minor: 7}, func(f Check) {
			f.Detail = strings.ReplaceAll(f.Detail, dir, "DIR")
			found = append(found, f)
		})
		assert.Equal(t, test.want, found, test.path)
	}
}

func TestDirs(t *testing.T) {
	d := bareMachine(t)
	d.setDefaults()
	put(t, d, "file", "")
	at := func(path string) Check {
		return d.dir(Dir{Name: "f", Path: path, Need: 6 << 30, Move: "move it"})
	}
	assert.Equal(t, warn("f", "free 1.0 GiB, or move it", "%s/a/b, only 5.0 GiB free", d.Root), at(d.Root+"/a/b"))
	assert.Equal(t, fail("f", "remove "+d.Root+"/file, or move it", "%s/file is not a directory", d.Root), at(d.Root+"/file"))
	assert.Equal(t, Fail, at("/proc/self/nothing").Status)
	d.Free = freeBytes
	assert.NotEqual(t, Fail, at(d.Root).Status)
}

func TestSynchronized(t *testing.T) {
	_, err := synchronized()
	assert.NoError(t, err)
	d := &Doctor{Synchronized: func() (bool, error) { return false, errors.New("not permitted") }}
	assert.Equal(t, warn("clock", "sudo timedatectl set-ntp true", "state unknown: not permitted"), d.clock())
}

func TestProgramThatIsNone(t *testing.T) {
	d := bareMachine(t)
	d.setDefaults()
	d.Program = []string{"/none/program"}
	assert.Equal(t, []Check{fail("x", "fix", "fork/exec /none/program: no such file or directory")},
		d.child(t.Context(), "x", request{Job: "driver"}, "fix"))
	d.Program = []string{os.Args[0]}
	assert.Equal(t, []Check{fail("x", "fix", `ends the process with status 1: diagnose: no job "nothing"`)},
		d.child(t.Context(), "x", request{Job: "nothing"}, "fix"))
}

func TestEncode(t *testing.T) {
	var out strings.Builder
	require.NoError(t, Checks{ok("a", "b"), fail("c", "d", "e")}.Encode(&out))
	assert.JSONEq(t, `{"v":1,"failed":1,"skipped":0,"checks":[{"check":"a","status":"OK","detail":"b"},{"check":"c","status":"FAIL","detail":"e","fix":"d"}]}`, out.String())
}

func TestBroker(t *testing.T) {
	d := bareMachine(t)
	d.setDefaults()
	d.Config.Name = "gate"
	server := &mqttbroker.Broker{Address: "127.0.0.1:0", User: "edge", Password: "right"}
	require.NoError(t, server.Open())
	t.Cleanup(func() { server.Close() })
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	nobody := listener.Addr().String()
	listener.Close()
	put(t, d, "right", "right\n")
	put(t, d, "wrong", "wrong\n")
	m := &d.Config.MQTT
	for _, test := range []struct {
		name, url, password, want string
	}{
		{"off", "off", "", "OK    MQTT broker       off\n"},
		{
			"nobody there", "tcp://" + nobody, "right",
			"FAIL  MQTT broker       tcp://" + nobody + ": dial tcp " + nobody + ": connect: connection refused\n" +
				"                        fix: nothing listens there, check that the broker runs and the port\n",
		},
		{
			"wrong password", server.URL(), "wrong",
			"FAIL  MQTT broker       " + server.URL() + ": not Authorized\n" +
				"                        fix: check user and password, and what the broker allows this client\n",
		},
		{"right password", server.URL(), "right", "OK    MQTT broker       " + server.URL() + " accepts \"gate\"\n"},
		{
			"no password file", server.URL(), "none",
			"FAIL  MQTT broker       open mqtt: read password file: open ROOT/none: no such file or directory\n                        fix: correct the mqtt settings\n",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			m.URL, m.User, m.PasswordFile = test.url, "edge", filepath.Join(d.Root, test.password)
			var out strings.Builder
			for _, f := range d.broker(t.Context()) {
				require.NoError(t, f.Print(&out))
			}
			assert.Equal(t, test.want, strings.ReplaceAll(out.String(), d.Root, "ROOT"))
		})
	}
}

func TestEmbeddedBroker(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	taken := listener.Addr().String()
	assert.Equal(t, ok("b", "embedded, 127.0.0.1:0 is available"), embedded("b", "127.0.0.1:0"))
	assert.Equal(t, fail("b", "stop the program that listens there (ss -ltnp shows it), or set another --mqtt-listen", "embedded, but %s is in use",
		taken), embedded("b", taken))
	assert.Equal(t, Fail, embedded("b", "192.0.2.1:1").Status)
}

func TestVideoDevices(t *testing.T) {
	d := bareMachine(t)
	d.Devices = func() []source.DeviceInfo {
		return []source.DeviceInfo{
			{Path: "/dev/video0", Captures: true, Error: "permission denied"},
			{
				Path: "/dev/video1", Name: "C920", Captures: true,
				Formats: []source.DeviceFormat{{Code: "YUYV", Width: 1280, Height: 720}, {Code: "MJPG", Width: 1920, Height: 1080}},
			},
			{Path: "/dev/video2", Name: "C920 metadata"},
			{Path: "/dev/video3", Captures: true},
		}
	}
	show := func() string {
		var out strings.Builder
		for _, f := range d.devices() {
			require.NoError(t, f.Print(&out))
		}
		return out.String()
	}
	const rest = `  video device      /dev/video0: permission denied
                        fix: sudo usermod -aG video $USER, then log in again; a container needs --device and the group
OK    video device      /dev/video1 C920: YUYV up to 1280x720, MJPG up to 1920x1080
OK    video device      /dev/video3: formats unknown
`
	assert.Equal(t, "WARN"+rest, show())
	d.Config.Cameras = []config.Camera{{Name: "cam0", URI: "0"}}
	assert.Equal(t, "FAIL"+rest, show())
}

func TestHangingDriver(t *testing.T) {
	d := bareMachine(t)
	d.Timeout = 50 * time.Millisecond
	awake := make(chan struct{})
	defer close(awake)
	d.Devices = func() []source.DeviceInfo {
		<-awake
		return nil
	}
	assert.Equal(t, []Check{fail("video device", "unplug it", "no answer in 50ms")},
		d.bounded(t.Context(), "video device", "unplug it", d.devices))
	d.Timeout = time.Minute
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	assert.Equal(t, []Check{fail("video device", "unplug it", "context canceled")}, d.bounded(ctx, "video device", "unplug it", d.devices))
}

// unprivileged makes the child processes those of a user who may do nothing, when the tests run as root.
func unprivileged(t *testing.T, d *Doctor) {
	if os.Getuid() != 0 {
		return
	}
	drop := testtool.Program(t, "setpriv")
	for dir := d.Root; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		require.NoError(t, os.Chmod(dir, 0o755)) // of this test alone
	}
	from, err := os.Open(os.Args[0])
	require.NoError(t, err)
	defer from.Close()
	program := filepath.Join(d.Root, "program")
	to, err := os.OpenFile(program, os.O_CREATE|os.O_WRONLY, 0o755)
	require.NoError(t, err)
	_, err = io.Copy(to, from)
	require.NoError(t, err)
	require.NoError(t, to.Close())
	d.Program = []string{drop, "--reuid=65534", "--regid=65534", "--clear-groups", program}
}

func TestNoPermissionOnACamera(t *testing.T) {
	d := bareMachine(t)
	unprivileged(t, d)
	put(t, d, "video0", "")
	require.NoError(t, os.Chmod(filepath.Join(d.Root, "video0"), 0))
	d.Config.Cameras = []config.Camera{{Name: "gate", URI: "v4l2://" + filepath.Join(d.Root, "video0")}}
	d.setDefaults()
	var out strings.Builder
	for _, f := range d.cameras(t.Context()) {
		require.NoError(t, f.Print(&out))
	}
	assert.Equal(t, "FAIL  camera gate       open ROOT/video0: permission denied\n                        fix: add the user to the group 'video'\n",
		strings.ReplaceAll(out.String(), d.Root, "ROOT"))
}

func TestCameras(t *testing.T) {
	d := bareMachine(t)
	d.setDefaults()
	put(t, d, "text.mp4", "hello")
	for _, test := range []struct{ uri, want string }{
		{"demo?width=640&height=480&fps=15", "OK    camera cam0       640x480 BGR, first image after N s, 15 fps\n"},
		{"demo?width=1", "FAIL  camera cam0       "},
		{d.Root + "/none.mp4", "FAIL  camera cam0       open ROOT/none.mp4: no such file\n"},
		{"rtsp://user:secret@127.0.0.1:1/x", "FAIL  camera cam0       "},
	} {
		t.Run(test.uri, func(t *testing.T) {
			d.Config.Cameras = []config.Camera{{Name: "cam0", URI: test.uri}}
			var out strings.Builder
			for _, f := range d.cameras(t.Context()) {
				require.NoError(t, f.Print(&out))
			}
			text := seconds.ReplaceAllString(strings.ReplaceAll(out.String(), d.Root, "ROOT"), "after N s")
			assert.True(t, strings.HasPrefix(text, test.want), text)
			assert.NotContains(t, text, "secret")
			if strings.HasPrefix(text, "FAIL") {
				assert.Contains(t, text, "fix: ")
			}
		})
	}
	d.Config.Cameras = nil
	none := warn("camera", "add one: --camera 0, or --camera demo to try the program", "none configured")
	assert.Equal(t, []Check{none}, d.cameras(t.Context()))
}

func TestJetson(t *testing.T) {
	d := bareMachine(t)
	for path, content := range map[string]string{
		"/etc/nv_tegra_release":                               "# R36 (release), REVISION: 4.3, GCID: 1",
		"/etc/nvpmodel.conf":                                  "< POWER_MODEL ID=0 NAME=15W >\n< POWER_MODEL ID=1 NAME=25W >\n< POWER_MODEL ID=2 NAME=MAXN_SUPER >\n",
		"/var/lib/nvpmodel/status":                            "pmode:0001",
		"/proc/device-tree/model":                             "NVIDIA Jetson Orin NX\x00",
		"/sys/class/devfreq/17000000.gpu/device/of_node/name": "gpu\x00",
		"/sys/class/devfreq/17000000.gpu/device/load":         "500",
		"/sys/class/devfreq/17000000.gpu/cur_freq":            "306000000",
		"/sys/class/devfreq/17000000.gpu/min_freq":            "306000000",
		"/sys/class/devfreq/17000000.gpu/max_freq":            "918000000",
		"/sys/class/thermal/thermal_zone0/type":               "tj-thermal",
		"/sys/class/thermal/thermal_zone0/temp":               "51500",
		"/sys/class/thermal/thermal_zone0/trip_point_0_type":  "passive",
		"/sys/class/thermal/thermal_zone0/trip_point_0_temp":  "99000",
		"/proc/meminfo":                                       "MemTotal: 8388608 kB\nMemAvailable: 4194304 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\nNvMapMemUsed: 1572864 kB\n",
	} {
		put(t, d, path, content)
	}
	d.Synchronized = func() (bool, error) { return false, nil }
	d.Config.Cameras = []config.Camera{{Name: "front", URI: "csi://0"}}
	text, failed := printed(t, d)
	assert.Equal(t, `OK    machine           NVIDIA Jetson Orin NX, Jetson Linux 36.4.3 (JetPack 6.2)
WARN  memory            8.0 GiB, 4.0 GiB available, no swap, 1.5 GiB held by GPU, video engines and cameras
                        fix: add 4 GiB of swap, or the kernel may end the build of an engine plan: sudo fallocate -l 4G /swapfile && sudo chmod 600 /swapfile && sudo mkswap /swapfile && sudo swapon /swapfile
WARN  power mode        25W; MAXN_SUPER is faster
                        fix: sudo nvpmodel -m 2, where power supply and cooling allow it
WARN  clocks            GPU between 306 and 918 MHz, now 306
                        fix: sudo jetson_clocks, for a lower and steadier latency
OK    temperature       tj-thermal 51.5 °C, throttles at 99
WARN  clock             not synchronized: times in messages may be wrong
                        fix: sudo timedatectl set-ntp true
`, text[:strings.Index(text, "OK    cache directory")])
	assert.Equal(t, `FAIL  GStreamer         missing appsink, videoconvert, decodebin, rtspsrc, h264parse and h265parse, avdec_h264, nvarguscamerasrc, nvvidconv, nvv4l2decoder
                        fix: CSI cameras need a Jetson with nvidia-l4t-gstreamer; in a container, start it with --runtime nvidia
FAIL  nvargus-daemon    not running, CSI cameras need it
                        fix: sudo systemctl restart nvargus-daemon; in a container, mount /tmp/argus_socket
FAIL  camera front      open csi://0: CSI cameras need GStreamer's nvarguscamerasrc, which is not installed
                        fix: it is part of JetPack; elsewhere name a /dev/videoN, or use --camera demo
`, lines(text, "GStreamer", "nvargus", "camera"))
	assert.Contains(t, text, "FAIL  CUDA driver")
	assert.Contains(t, text, "FAIL  TensorRT")
	assert.Equal(t, 5, failed)

	put(t, d, "/sys/class/hwmon/hwmon2/name", "soctherm_oc")
	put(t, d, "/sys/class/hwmon/hwmon2/oc3_event_cnt", "7")
	text, _ = printed(t, d)
	assert.Equal(t, `WARN  power mode        25W; throttled 7 times by over-current since boot
                        fix: use a stronger power supply, or a mode with a lower limit: sudo nvpmodel -m NUMBER
`, lines(text, "power mode"))
}

package daemon

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
)

// children are the processes that a process has started and that are not gone, dead ones that nobody has asked after included.
func children(t *testing.T, parent int) (found []int) {
	entries, err := filepath.Glob("/proc/[0-9]*/stat")
	require.NoError(t, err)
	for _, entry := range entries {
		text, err := os.ReadFile(entry)
		if err != nil {
			continue // it has ended
		}
		var process, its int
		var state string
		after := string(text[strings.LastIndexByte(string(text), ')')+1:]) // a program's name may hold anything
		if _, err := fmt.Sscan(after, &state, &its); err != nil || its != parent {
			continue
		}
		_, err = fmt.Sscan(string(text), &process)
		require.NoError(t, err)
		found = append(found, process)
	}
	return found
}

// TestAKilledBuildIsTriedAgain: when the kernel takes the process that builds the engine plan, the daemon goes on with the CPU, says why,
// and tries again after a pause.
func TestAKilledBuildIsTriedAgain(t *testing.T) {
	t.Parallel()
	environment, model := programtest.StandInGPU(t)
	broker, page := programtest.FreePort(t), programtest.FreePort(t)
	p := programtest.StartWith(t, append(environment, "FAKE_TRT=slow"), "--camera", "demo?width=320&height=240&fps=10", "--model", model,
		"--name", "gate", "--json",
		"--mqtt-listen", fmt.Sprintf("127.0.0.1:%d", broker), "--web", fmt.Sprintf("127.0.0.1:%d", page))
	daemon := p.Command.Process.Pid
	logged := func(text string) {
		t.Helper()
		require.Eventually(t, func() bool { return strings.Contains(p.Stderr.String(), text) }, programtest.Patience, 10*time.Millisecond,
			"%s in %s", text, p.Stderr)
	}
	build := func() (process int) {
		t.Helper()
		require.Eventually(t, func() bool {
			if all := children(t, daemon); len(all) == 1 {
				process = all[0]
			}
			return process != 0
		}, programtest.Patience, 5*time.Millisecond, "no build: %s", p.Stderr)
		return process
	}
	require.NoError(t, syscall.Kill(build(), syscall.SIGKILL))
	killed := time.Now()
	logged(`msg="going on with onnxruntime for now" error="engine plan not built: tensorrt build: the build process was killed, most likely because memory ran out `)
	logged("retry=15s")
	require.Empty(t, children(t, daemon), "no zombie is left")
	before, _ := p.Frame()
	for range 20 {
		after, more := p.Frame()
		require.True(t, more)
		require.Greater(t, after.Seq, before.Seq)
		before = after
	}
	programtest.Until(t, programtest.Subscribe(t, broker, "edge-infer/gate/status"), "the build process was killed")
	_, text := programtest.Get(t, programtest.Visitor(t), fmt.Sprintf("http://127.0.0.1:%d/api/status", page))
	var status struct {
		Engine struct{ Backend, Progress string }
	}
	require.NoError(t, json.Unmarshal(text, &status))
	require.Equal(t, "onnxruntime", status.Engine.Backend)
	require.Regexp(t, `^TensorRT is tried again at \d\d:\d\d:\d\d: engine plan not built: .*killed`, status.Engine.Progress)

	build()
	require.Greater(t, time.Since(killed), 10*time.Second, "not at once")
	logged(`msg="engine replaced" engine=tensorrt`)
	programtest.Until(t, programtest.Subscribe(t, broker, "edge-infer/gate/status"), `"backend":"tensorrt"`)
	require.NoError(t, p.Command.Process.Signal(syscall.SIGTERM))
	_, stats := p.Rest()
	require.NoError(t, p.Wait())
	camera := stats.Cameras[0]
	require.Zero(t, camera.Failed)
	require.LessOrEqual(t, camera.Captured-camera.Inferred-camera.Dropped, uint64(1), "one frame may wait at the end: %+v", camera)
}

// TestEverybodyHearsThatAPlanIsBuiltFirst: while nothing can serve, page, readiness, metrics and broker say why and how far it is.
func TestEverybodyHearsThatAPlanIsBuiltFirst(t *testing.T) {
	t.Parallel()
	environment, model := programtest.StandInGPU(t)
	held := filepath.Join(t.TempDir(), "held")
	require.NoError(t, os.WriteFile(held, nil, 0o600))
	broker, listen := programtest.FreePort(t), programtest.FreePort(t)
	programtest.Mosquitto(t, broker)
	received := programtest.Subscribe(t, broker, "edge-infer/gate/#")
	p := programtest.StartWith(t, append(environment, "FAKE_TRT_HELD="+held, "EDGE_INFER_ONNXRUNTIME=/none/libonnxruntime.so"),
		"--camera", "demo?width=320&height=240&fps=20", "--model", model, "--name", "gate", "--json",
		"--mqtt", fmt.Sprintf("tcp://127.0.0.1:%d", broker), "--web", fmt.Sprintf("127.0.0.1:%d", listen))
	p.Discard()
	visitor, address := programtest.Visitor(t), fmt.Sprintf("http://127.0.0.1:%d/", listen)
	get := func(path string) (int, string) {
		response, err := visitor.Get(address + path)
		if err != nil {
			return 0, ""
		}
		defer response.Body.Close()
		text, _ := io.ReadAll(response.Body)
		return response.StatusCode, string(text)
	}
	says := func(path string, status int, pattern string) {
		t.Helper()
		require.Eventually(t, func() bool {
			got, text := get(path)
			return got == status && regexp.MustCompile(pattern).MatchString(text)
		}, programtest.Patience, 20*time.Millisecond, "%s in %s: %s", pattern, path, p.Stderr)
	}
	says("readyz", http.StatusServiceUnavailable, `^not ready: building a quick engine plan: .*step 5 of 10`)
	says("healthz", http.StatusOK, `^ok`)
	says("metrics", http.StatusOK, `(?m)^edge_infer_opening 1$`)
	says("api/status", http.StatusOK, `"opening":"building a quick engine plan: .*step 5 of 10`)
	says("", http.StatusOK, `<html`)
	programtest.Until(t, received, `"reason":"nothing runs the model yet: building a quick engine plan`)
	require.NoError(t, os.Remove(held))
	says("readyz", http.StatusOK, `^ready`)
	says("metrics", http.StatusOK, `(?m)^edge_infer_opening 0$`)
	programtest.Until(t, received, `"backend":"tensorrt"`)
	says("api/status", http.StatusOK, `"reason":"tensorrt is the first choice, and its plan has been built"`)
	require.NoError(t, p.Command.Process.Signal(syscall.SIGTERM))
	require.NoError(t, <-p.Done)
}

// TestWithoutAnotherEngineThePlanIsBuiltFirst: the service manager hears that a plan is being built and that it takes longer; then TensorRT
// serves, at first with a plan that was built quickly where nobody has said that it must be TensorRT.
func TestWithoutAnotherEngineThePlanIsBuiltFirst(t *testing.T) {
	t.Parallel()
	environment, model := programtest.StandInGPU(t)
	for _, test := range []struct {
		engine, building string
		replaced         int
	}{{"auto", "building a quick engine plan", 1}, {"tensorrt", "building the engine plan", 0}} {
		t.Run(test.engine, func(t *testing.T) {
			m, p := manageWith(t, append(environment, "FAKE_TRT=slow", "EDGE_INFER_ONNXRUNTIME=/none/libonnxruntime.so"),
				"--camera", "demo?width=320&height=240&fps=20", "--model", model, "--engine", test.engine, "--mqtt", "off", "--json")
			require.Equal(t, "STATUS="+test.building, m.until("STATUS="))
			require.Equal(t, "EXTEND_TIMEOUT_USEC=20000000\nWATCHDOG=1", m.until("EXTEND_TIMEOUT_USEC="))
			require.NotContains(t, m.seen, "READY=1")
			m.until("READY=1")
			m.status(func(text string) bool { return !strings.Contains(text, "cam0") && strings.Contains(text, " fps") })
			require.Eventually(t, func() bool {
				return strings.Count(p.Stderr.String(), `msg="engine replaced" engine=tensorrt`) == test.replaced
			},
				programtest.Patience, 10*time.Millisecond, "%s", p.Stderr)
			require.Equal(t, test.replaced, strings.Count(p.Stderr.String(), "so its plan is built before anything is served"))
			require.NoError(t, p.Command.Process.Signal(syscall.SIGTERM))
			require.NoError(t, <-p.Done)
		})
	}
}

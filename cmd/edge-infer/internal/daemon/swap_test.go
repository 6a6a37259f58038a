package daemon

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// TestPlansSwapWithoutLosingFrames: while the CPU serves a plan is built quickly, then while that one serves the plan of full effort, which
// the next start finds.
func TestPlansSwapWithoutLosingFrames(t *testing.T) {
	t.Parallel()
	environment, model := programtest.StandInGPU(t)
	cache := t.TempDir()
	run := func(settings string, swaps int) *programtest.Program {
		p := programtest.StartWith(t, append(environment, "FAKE_TRT="+settings, "XDG_CACHE_HOME="+cache), "--camera",
			"demo?width=320&height=240&fps=20", "--model", model,
			"--mqtt", "off", "--json")
		p.Frame()
		require.Eventually(t, func() bool { return strings.Count(p.Stderr.String(), `msg="engine replaced" engine=tensorrt`) == swaps },
			programtest.Patience,
			10*time.Millisecond, "%s", p.Stderr)
		// the last plan's images would contradict the head if any did
		for since, served := time.Now(), 0; served < predict.ContradictionImages+5; {
			frame, more := p.Frame()
			require.True(t, more, "%s", p.Stderr)
			if frame.Time.After(since) {
				served++
			}
		}
		require.NoError(t, p.Command.Process.Signal(syscall.SIGTERM))
		frames, stats := p.Rest()
		require.NoError(t, p.Wait())
		for i := 1; i < len(frames); i++ {
			require.Greater(t, frames[i].Seq, frames[i-1].Seq)
		}
		camera := stats.Cameras[0]
		require.Zero(t, camera.Failed)
		require.LessOrEqual(t, camera.Captured-camera.Inferred-camera.Dropped, uint64(1), "one frame may wait at the end: %+v", camera)
		return p
	}
	said := run("slow", 2).Stderr.String()
	require.Contains(t, said, `msg="half of the CPUs is left to building the plan"`)
	quick, full := strings.Index(said, `msg="building a quick engine plan"`), strings.Index(said, `msg="building the engine plan"`)
	require.True(t, quick >= 0 && full > quick, said)
	require.Contains(t, said[full:], "serving=tensorrt")

	plans, err := filepath.Glob(filepath.Join(cache, "edge-infer", "*.plan"))
	require.NoError(t, err)
	require.Len(t, plans, 2)
	levels := 0
	for _, plan := range plans {
		data, err := os.ReadFile(plan)
		require.NoError(t, err)
		levels += strings.Count(string(data), "note level 0\n")
	}
	require.Equal(t, 1, levels)
	said = run("", 0).Stderr.String()
	require.NotContains(t, said, "building")
	require.NotContains(t, said, "refused")
}

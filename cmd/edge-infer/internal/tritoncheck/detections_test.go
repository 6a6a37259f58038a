package tritoncheck

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
)

// seen is what infer --json says of an image.
type seen struct {
	File       string
	Detections []struct {
		Label string
		Score float64
		Box   []float64
	}
}

// look runs the program over images.
func look(t *testing.T, images string, flags ...string) []seen {
	return parse(t, edge(t, append([]string{"infer", images, "--json", "--remote-timeout", "30s"}, flags...)...))
}

// parse reads what infer --json prints.
func parse(t *testing.T, output string) (all []seen) {
	for line := range strings.Lines(output) {
		var s seen
		require.NoError(t, json.Unmarshal([]byte(line), &s), line)
		s.File = filepath.Base(s.File)
		all = append(all, s)
	}
	return all
}

// The server sees what the engine here sees, over both transports, sent and through shared memory, alone and in batches.
func TestDetectionsAreThoseOfTheLocalEngine(t *testing.T) {
	s := start(t, exported(t))
	images := filepath.Join(programtest.Scenes(t, 40, 7), "images")
	local := look(t, images, "--engine", "onnxruntime=cpu")
	require.Len(t, local, 40)
	for _, way := range [][]string{
		{"http"}, {"grpc"}, {"http", "--remote-shared-memory=off"}, {"grpc", "--remote-shared-memory=off"}, {"grpc", "--batch", "8"},
	} {
		remote := look(t, images, append([]string{"--engine", "triton=" + s.at(way[0], "demo")}, way[1:]...)...)
		objects, furthest := compare(t, local, remote)
		t.Logf("%v: %d objects on %d images, scores at most %.2g away", way, objects, len(local), furthest)
	}
}

// A server that does not see the GPU refuses its memory, by both transports; images go through the system's then, and one line says why.
// The GPU here is a stand-in, whose handles no server can open.
func TestTheServerRefusesTheMemoryOfAGPU(t *testing.T) {
	s := start(t, exported(t))
	images := filepath.Join(programtest.Scenes(t, 40, 7), "images")
	local := look(t, images, "--engine", "onnxruntime=cpu")
	environment, _ := programtest.StandInGPU(t)
	for _, scheme := range []string{"http", "grpc"} {
		c := programtest.Command(t, "infer", images, "--json", "--remote-timeout", "30s", "--engine", "triton="+s.at(scheme, "demo"),
			"--remote-shared-memory=cuda")
		c.Env = append(c.Environ(), environment...)
		var stdout, stderr bytes.Buffer
		c.Stdout, c.Stderr = &stdout, &stderr
		require.NoError(t, c.Run(), "%s", &stderr)
		objects, _ := compare(t, local, parse(t, stdout.String()))
		lines := strings.Count(stderr.String(), "\n")
		require.Equal(t, 1, lines, "%s", &stderr)
		require.Contains(t, stderr.String(), `"shared memory"=true reason="the server refuses it: failed to register shared memory region: invalid args`)
		t.Logf("%s: %d objects, %s", scheme, objects, &stderr)
	}
	require.Equal(t, 2, strings.Count(s.log.String(), "failed to open CUDA IPC handle"), "the handles were read")
}

// compare requires the same objects, and gives the number of them and the largest difference of two scores.
func compare(t *testing.T, want, got []seen) (objects int, furthest float64) {
	require.Len(t, got, len(want))
	for i := range want {
		require.Equal(t, want[i].File, got[i].File)
		require.Len(t, got[i].Detections, len(want[i].Detections), want[i].File)
		for k, w := range want[i].Detections {
			g := got[i].Detections[k]
			require.Equal(t, w.Label, g.Label, want[i].File)
			require.InDelta(t, w.Score, g.Score, 1e-3, want[i].File)
			require.InDeltaSlice(t, w.Box, g.Box, 0.1, want[i].File)
			furthest = max(furthest, w.Score-g.Score, g.Score-w.Score)
			objects++
		}
	}
	require.Positive(t, objects)
	return objects, furthest
}

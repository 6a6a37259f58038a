package daemon

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/demo"
	"github.com/edge-infer/edge-infer/engine/kserve"
	"github.com/edge-infer/edge-infer/engine/kserve/kservetest"
	"github.com/edge-infer/edge-infer/engine/onnx"
	"github.com/edge-infer/edge-infer/engine/onnxruntime"
)

// demoServer serves the demo model as Triton does.
func demoServer(t *testing.T) *kservetest.Server {
	e, err := onnxruntime.Open(engine.Options{Path: "demo.onnx", Bytes: demo.Model(), Slots: 1})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	file, err := onnx.Parse("demo.onnx", demo.Model())
	require.NoError(t, err)
	return kservetest.New(t, e, file.Metadata(), nil)
}

// onServers starts the program on servers, with time enough for an answer on a busy machine.
func onServers(t *testing.T, s *kservetest.Server, arguments ...string) *programtest.Program {
	return programtest.Start(t, append([]string{
		"--camera", "demo?width=320&height=240&fps=10", "--mqtt", "off", "--json", "--remote-timeout", "5s", "--engine",
		fmt.Sprintf("triton=grpc://%s/%s", s.Address, kservetest.Name),
	}, arguments...)...)
}

// frames waits for so many.
func frames(t *testing.T, p *programtest.Program, n int) {
	for range n {
		_, more := p.Frame()
		require.True(t, more, p.Stderr)
	}
}

// seen waits for frames until the text has been logged.
func seen(t *testing.T, p *programtest.Program, text string) {
	for !strings.Contains(p.Stderr.String(), text) {
		frames(t, p, 1)
	}
}

// While the servers are away the engine here does every frame, and hands back when they are there again.
func TestTheEngineHereTakesOver(t *testing.T) {
	t.Parallel()
	s := demoServer(t)
	p := onServers(t, s, "--model", "demo", "--remote-fallback", "local")
	frames(t, p, 3)
	require.NotContains(t, p.Stderr.String(), "takes over")
	s.Stop()
	seen(t, p, "local engine takes over from the inference server")
	frames(t, p, 3)
	s.Start(t)
	seen(t, p, "inference server in use again")
	frames(t, p, 3)
	require.NoError(t, p.Command.Process.Signal(syscall.SIGTERM))
	_, stats := p.Rest()
	require.NoError(t, p.Wait())
	require.Zero(t, stats.Cameras[0].Failed, p.Stderr)
	require.LessOrEqual(t, stats.Cameras[0].Captured-stats.Cameras[0].Inferred-stats.Cameras[0].Dropped, uint64(3), "in flight at the end")
}

// Servers that are away at the start are waited for by the engine here.
func TestServersComeLater(t *testing.T) {
	t.Parallel()
	s := demoServer(t)
	s.Stop()
	p := onServers(t, s, "--model", "demo", "--remote-fallback", "local")
	frames(t, p, 2)
	s.Start(t)
	seen(t, p, "inference server in use again")
	require.NoError(t, p.Stop(syscall.SIGTERM))
}

// Without one, frames are dropped and counted while no server answers, and the cameras go on.
func TestFramesAreDroppedWhileNoServerAnswers(t *testing.T) {
	t.Parallel()
	s := demoServer(t)
	p := onServers(t, s)
	frames(t, p, 3)
	s.Stop()
	p.Logged("server suspended")
	s.Start(t)
	p.Logged("server resumed")
	frames(t, p, 3)
	require.NoError(t, p.Command.Process.Signal(syscall.SIGTERM))
	_, stats := p.Rest()
	require.NoError(t, p.Wait())
	c := stats.Cameras[0]
	require.Positive(t, c.Failed, p.Stderr)
	require.LessOrEqual(t, c.Captured-c.Inferred-c.Dropped-c.Failed, uint64(3), "in flight at the end")
}

// TestAServerTurnsToNaN: a server that answers NaN after right results is suspended, and its requests are repeated on the other server: no
// frame of either camera is lost.
func TestAServerTurnsToNaN(t *testing.T) {
	t.Parallel()
	bad, good := demoServer(t), demoServer(t)
	p := onServers(t, bad, "--engine", fmt.Sprintf("triton=grpc://%s/%s,grpc://%[3]s/%[2]s", bad.Address, kservetest.Name, good.Address),
		"--camera", "demo?width=320&height=240&fps=10&seed=2")
	frames(t, p, 40)
	bad.Model.SetFault(func(_ *kserve.InferRequest, answer *kserve.InferResponse) error {
		for i := range answer.Outputs {
			data := bytes.Clone(answer.Outputs[i].Data)
			for at := 0; at+4 <= len(data); at += 4 {
				binary.LittleEndian.PutUint32(data[at:], math.Float32bits(float32(math.NaN())))
			}
			answer.Outputs[i].Data = data
		}
		return nil
	})
	p.Logged("server suspended")
	frames(t, p, 40)
	require.NoError(t, p.Command.Process.Signal(syscall.SIGTERM))
	_, stats := p.Rest()
	require.NoError(t, p.Wait())
	require.Contains(t, p.Stderr.String(), "the network's output is invalid")
	for _, c := range stats.Cameras {
		require.Zero(t, c.Failed, p.Stderr)
	}
}

package network_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/network"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/demo"
	"github.com/edge-infer/edge-infer/engine/kserve/kservetest"
	"github.com/edge-infer/edge-infer/engine/onnx"
	"github.com/edge-infer/edge-infer/engine/onnxruntime"
)

// Every server of a configuration is asked; one that is away says why and what to do.
func TestServers(t *testing.T) {
	e, err := onnxruntime.Open(engine.Options{Path: "demo.onnx", Bytes: demo.Model(), Slots: 1})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	file, err := onnx.Parse("demo.onnx", demo.Model())
	require.NoError(t, err)
	shares := func(s *kservetest.Server) { s.Memory = &kservetest.Memory{} }
	s, away := kservetest.New(t, e, file.Metadata(), shares), kservetest.New(t, e, file.Metadata(), nil)
	away.Stop()
	c := config.Default()
	require.Empty(t, network.ProbeServers(t.Context(), c))
	c.Remote.Timeout, c.Remote.SharedMemory = time.Minute, "off"
	c.Engine.Backend = "triton=grpc://" + s.Address + "/net, http://" + away.Address + "/net"
	all := network.ProbeServers(t.Context(), c)
	require.Len(t, all, 2)
	require.Positive(t, all[0].Latency)
	all[0].Latency = 1.25
	require.Equal(t, network.ServerProbe{
		Address: "grpc://" + s.Address + "/net", Software: "kservetest 1.2", Version: "1", Wire: "fp32", Latency: 1.25,
	}, all[0])
	require.Equal(t, "kservetest 1.2, version 1 of the model, images as fp32, 1.2 ms an image", all[0].String())
	require.Equal(t, "http://"+away.Address+"/net", all[1].Address)
	require.Contains(t, all[1].Reason, "no server runs the model: "+away.Address+": ")
	require.Equal(t, "check that the server runs and that the port is right (Triton: 8001 for gRPC, 8000 for HTTP)", all[1].Hint)

	c.Remote.SharedMemory, c.Engine.GPU = "cuda", "99" // no machine has so many GPUs
	all = network.ProbeServers(t.Context(), c)
	require.NotEmpty(t, all[0].NotOnGPUReason)
	require.Regexp(t, `ms an image \(not on the GPU: .*(no CUDA driver|no GPU number 99)`, all[0].String())
}

package diagnose

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
)

// Servers that are all away are a failure, unless an engine here stands by for them.
func TestServersThatAreAway(t *testing.T) {
	d := bareMachine(t)
	d.Config.Engine.Backend = fmt.Sprintf("triton=grpc://127.0.0.1:%d/net", programtest.FreePort(t))
	found := d.servers(t.Context())
	require.Len(t, found, 1)
	require.Equal(t, Fail, found[0].Status)
	require.Contains(t, found[0].Detail, "no server runs the model: 127.0.0.1:")
	require.Equal(t, "check that the server runs and that the port is right (Triton: 8001 for gRPC, 8000 for HTTP)", found[0].Remedy)
	d.Config.Remote.Fallback = config.Local
	require.Equal(t, Warn, d.servers(t.Context())[0].Status)
	d.Config.Engine.Backend = config.Auto
	require.Empty(t, d.servers(t.Context()))
}

package fleet

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/catalogue"
)

// Whoever points the demo model at a real camera hears once that it will find nothing, and which command gets a model that does.
func TestDemoModelOnARealCameraSaysWhatToDo(t *testing.T) {
	var log bytes.Buffer
	r := &Fleet{Logger: slog.New(slog.NewTextHandler(&log, nil))}
	drawn, err := capture.ParseURI("demo")
	require.NoError(t, err)
	real, err := capture.ParseURI("0")
	require.NoError(t, err)
	r.logDemoModel("demo", drawn)
	r.logDemoModel("yolox-s.onnx", real)
	require.Empty(t, log.String())
	r.logDemoModel("demo", real)
	r.logDemoModel("demo", real)
	assert.Equal(t, 1, strings.Count(log.String(), "the demo model knows nothing but the drawn parts"))
	_, command, found := strings.Cut(log.String(), "edge-infer model pull ")
	require.True(t, found)
	name, _, _ := strings.Cut(command, ",")
	_, err = catalogue.Lookup(name)
	require.NoError(t, err, "the catalogue has what is named")
}

package main

import (
	"fmt"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
	"github.com/edge-infer/edge-infer/internal/testtool"
)

func TestADeviceIsForgotten(t *testing.T) {
	t.Parallel()
	port := programtest.FreePort(t)
	programtest.Mosquitto(t, port)
	broker := fmt.Sprintf("tcp://127.0.0.1:%d", port)
	p := programtest.Start(t, "--camera", "demo?width=320&height=240", "--mqtt", broker, "--name", "gate", "--json")
	programtest.Until(t, programtest.Subscribe(t, port, "#"), "homeassistant/device/edge-infer-gate/hub/config")
	require.NoError(t, p.Stop(syscall.SIGTERM))
	output, err := programtest.Command(t, "config", "forget-discovery", "--mqtt", broker, "--name", "gate").CombinedOutput()
	require.NoError(t, err, string(output))
	require.Regexp(t, `^gate: \d+ retained messages removed\n$`, string(output))
	left := exec.Command(testtool.Program(t, "mosquitto_sub"), "-h", "127.0.0.1", "-p", fmt.Sprint(port), "-t", "#", "-W", "1")
	nothing, _ := left.Output() // it ends by its time limit, which is an error to it
	require.Empty(t, string(nothing))
	output = programtest.Output(t, "config", "forget-discovery", "--mqtt", broker, "--name", "gate", "--json")
	require.JSONEq(t, `{"v": 1, "device": "gate", "removed": 0}`, string(output))
}

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
)

// hangLimit is the time after which a request that has not returned is abandoned, with time to notice it.
const hangLimit = 13 * time.Second

// hangingNetworks is a daemon with two cameras, each with a network of its own on one stand-in GPU. One network does not return, neither
// from requests nor from being opened, while the attack wants it. The daemon runs during that attack only.
type hangingNetworks struct {
	arena       *arena
	environment []string
	requests    string    // the file that holds requests
	openings    string    // the file that holds openings
	program     *attacked // nil between attacks
	begun       time.Time
	before      cameraCount
}

// healthyCamera is the one whose network always returns.
func healthyCamera() []string { return []string{"healthy"} }

func newHangingNetworks(a *arena) *hangingNetworks {
	environment, model := programtest.StandInGPU(a.t)
	dir := a.t.TempDir()
	h := &hangingNetworks{arena: a, requests: filepath.Join(dir, "requests"), openings: filepath.Join(dir, "openings")}
	h.environment = append(environment, "FAKE_TRT_REQUEST_HELD="+h.requests, "FAKE_TRT_OPENING_HELD="+h.openings)
	text := "name: hanging\nengine: {backend: tensorrt}\ncameras:\n"
	for camera, path := range map[string]string{"healthy": model, "hanging": programtest.StandInModel(a.t, "held")} {
		text += fmt.Sprintf("- {name: %s, uri: 'demo?width=320&height=240&fps=%d', model: {path: %s}}\n", camera, attackCameraRate, path)
	}
	a.write("hanging.yaml", text)
	return h
}

// attackHangingNetworks makes a network hang: for a moment, or until its request is abandoned, and then while it is opened again.
func (a *arena) attackHangingNetworks() {
	h := a.hanging
	if h.program == nil {
		h.program = a.start("the daemon with a network that hangs", "/api/status", func(address string) []string {
			return []string{"--config", a.path("hanging.yaml"), "--json", "--mqtt", "off", "--web", address}
		}, h.environment...)
		h.requireFrames("hanging", "at the start")
		h.before, h.begun = h.program.counted(healthyCamera()), time.Now()
	}
	hold := func(path string, pause time.Duration) {
		require.NoError(a.t, os.WriteFile(path, nil, 0o600))
		time.Sleep(pause)
		require.NoError(a.t, os.Remove(path))
	}
	abandoned := func() int { return strings.Count(h.program.Stderr.String(), "a request has not returned for") }
	if a.random.IntN(3) > 0 || abandoned() >= 2 { // the third one that is abandoned makes the program restart after ten minutes
		hold(h.requests, time.Duration(a.random.IntN(1000))*time.Millisecond)
	} else {
		require.NoError(a.t, os.WriteFile(h.openings, nil, 0o600))
		hold(h.requests, hangLimit)
		hold(h.openings, hangLimit)
	}
	h.requireFrames("hanging", "when it returns")
	require.False(a.t, h.program.ended(), "the daemon with a network that hangs ended: %s", tail(h.program.Stderr))
}

// requireFrames waits for results of a camera.
func (h *hangingNetworks) requireFrames(camera, when string) {
	before := h.program.counted([]string{camera}).frames
	require.Eventually(h.arena.t, func() bool { return h.program.counted([]string{camera}).frames > before+2 }, programtest.Patience,
		10*time.Millisecond, "%s: no results of camera %s: %s", when, camera, tail(h.program.Stderr))
}

// stop ends the daemon while its network hangs. In a timed run the other camera may not have lost more than its share.
func (h *hangingNetworks) stop() {
	if h.program == nil {
		return
	}
	t := h.arena.t
	after, seconds := h.program.counted(healthyCamera()), time.Since(h.begun).Seconds()
	frames, lost := after.frames-h.before.frames, after.lost-h.before.lost
	t.Logf("beside a network that hangs: %d frames in %.1f s, %d lost", frames, seconds, lost)
	require.Positive(t, frames)
	if h.arena.timed {
		assert.GreaterOrEqual(t, float64(frames), attackRate*seconds*attackCameraRate, "rate beside a network that hangs")
	}
	require.NoError(t, os.WriteFile(h.requests, nil, 0o600))
	time.Sleep(time.Second)
	begun := time.Now()
	require.NoError(t, h.program.Command.Process.Signal(syscall.SIGTERM))
	<-h.program.finished
	require.NoError(t, h.program.result, "%s", tail(h.program.Stderr))
	if h.arena.timed {
		assert.Less(t, time.Since(begun), 5*time.Second, "the end while a request hangs")
	}
	require.NoError(t, os.Remove(h.requests))
	h.program = nil
}

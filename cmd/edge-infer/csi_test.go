package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture/source/argustest"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
	"github.com/edge-infer/edge-infer/internal/testtool"
)

// restartsEnvironment is how many times TestRestartsOfACSICamera ends a camera's process; few without it. With it the test also measures
// the rate of the other camera, for which the machine must have nothing else to do.
const restartsEnvironment = "EDGE_INFER_CSI_RESTARTS"

const (
	victim, bystander = "victim", "bystander"
	victimStall       = 2 * time.Second
	everyHang         = 10 // restarts of which one is of a process that hangs
	quietTime         = 2 * time.Second
)

// twoSensors is a daemon with two CSI cameras, whose plugins and nvargus-daemon are stand-ins.
type twoSensors struct {
	*programtest.Program
	t            *testing.T
	page, socket string
}

func startTwoSensors(t *testing.T) *twoSensors {
	dir := t.TempDir()
	_, err := argustest.BuildPlugin(dir, testtool.Flags(t, "--cflags", "--libs", "gstreamer-base-1.0")...)
	require.NoError(t, err)
	argus := &argustest.Daemon{Path: filepath.Join(t.TempDir(), "argus_socket")}
	require.NoError(t, argus.Start())
	t.Cleanup(argus.Stop)
	file := filepath.Join(dir, "edge-infer.yaml")
	text := "mqtt: {url: 'off'}\nweb: {listen: '127.0.0.1:0'}\nmodel: {path: demo}\ncameras:\n"
	for camera, settings := range map[string]string{victim: "0?%s', stall: " + victimStall.String(), bystander: "7?%s'"} {
		text += fmt.Sprintf("  - {name: %s, rate: 2, uri: 'csi://"+settings+"}\n", camera, "width=320&height=240&fps=30")
	}
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	s := &twoSensors{t: t, socket: argus.Path, Program: programtest.StartWith(t, []string{
		"GST_PLUGIN_PATH=" + dir, "GST_REGISTRY=" + filepath.Join(dir, "registry"), "EDGE_INFER_ARGUS_SOCKET=" + argus.Path,
		"FAKE_ARGUS_SOCKET=" + argus.Path,
	}, "run", "--config", file)}
	s.page = s.PrintedAfter("web page at ")
	s.Discard()
	return s
}

// metric returns a metric of a camera, or of the process with an empty name.
func (s *twoSensors) metric(name, camera string) float64 {
	code, text := programtest.Get(s.t, programtest.Visitor(s.t), s.page+"metrics")
	require.Equal(s.t, 200, code)
	if camera != "" {
		name += `{camera="` + camera + `"}`
	}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		if value, found := strings.CutPrefix(lines.Text(), name+" "); found {
			number, err := strconv.ParseFloat(value, 64)
			require.NoError(s.t, err)
			return number
		}
	}
	require.FailNow(s.t, "no metric "+name)
	return 0
}

func (s *twoSensors) captured(camera string) float64 {
	return s.metric("edge_infer_frames_captured_total", camera)
}

// processes returns the processes that read cameras.
func (s *twoSensors) processes() (pids []int) {
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", s.Command.Process.Pid))
	require.NoError(s.t, err)
	for _, list := range lists {
		text, _ := os.ReadFile(list) // a thread may have ended
		for _, word := range strings.Fields(string(text)) {
			pid, err := strconv.Atoi(word)
			require.NoError(s.t, err)
			pids = append(pids, pid)
		}
	}
	return pids
}

// victim returns the process that has the first sensor, 0 while none has it.
func (s *twoSensors) victim() int {
	for _, pid := range s.processes() {
		files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
		for _, file := range files {
			if target, _ := os.Readlink(file); target == s.socket+".0" {
				return pid
			}
		}
	}
	return 0
}

// awaitFrames waits until a camera has delivered so many further frames.
func (s *twoSensors) awaitFrames(camera string, more float64) {
	before := s.captured(camera)
	require.Eventually(s.t, func() bool { return s.captured(camera) >= before+more }, programtest.Patience, 50*time.Millisecond, "%s: %s",
		camera, s.Stderr)
}

// strike ends the process of the first sensor, or stops it as one that hangs, and returns the time until another one has given a frame.
func (s *twoSensors) strike(signal syscall.Signal) time.Duration {
	pid := s.victim()
	require.NotZero(s.t, pid)
	begun := time.Now()
	require.NoError(s.t, syscall.Kill(pid, signal))
	require.Eventually(s.t, func() bool {
		next := s.victim()
		return next != 0 && next != pid
	}, programtest.Patience, 20*time.Millisecond, "%s", s.Stderr)
	s.awaitFrames(victim, 1) // those of the process before have been taken
	return time.Since(begun)
}

// rate is how many frames the bystander has given in some time.
type rate struct {
	frames float64
	time   time.Duration
}

// during adds what the bystander gives while something is done.
func (r *rate) during(s *twoSensors, do func()) {
	begun, before := time.Now(), s.captured(bystander)
	do()
	r.frames += s.captured(bystander) - before
	r.time += time.Since(begun)
}

func (r *rate) perSecond() float64 { return r.frames / r.time.Seconds() }

// TestRestartsOfACSICamera ends the process of one camera over and over, by a crash or because it hangs: it comes back, the other camera
// goes on, and the daemon keeps no process, descriptor or memory.
func TestRestartsOfACSICamera(t *testing.T) {
	t.Parallel()
	count, measured := 2, false
	if text := os.Getenv(restartsEnvironment); text != "" {
		var err error
		count, err = strconv.Atoi(text)
		require.NoError(t, err)
		measured = true
	}
	s := startTwoSensors(t)
	s.awaitFrames(bystander, 5)
	s.awaitFrames(victim, 5)
	require.Len(t, s.processes(), 2, "one process for each camera")
	s.strike(syscall.SIGKILL) // what only the first one needs is not counted
	files, resident := s.metric("process_open_fds", ""), s.metric("process_resident_memory_bytes", "")
	var quiet, busy rate
	var back []time.Duration
	for i := range count {
		signal := syscall.SIGKILL
		if i%everyHang == 1 {
			signal = syscall.SIGSTOP
		}
		busy.during(s, func() { back = append(back, s.strike(signal)) })
		if measured { // in turns, because other programs of the machine come and go
			quiet.during(s, func() { time.Sleep(quietTime) })
		}
	}
	slices.Sort(back)
	t.Logf("%d restarts: back after %.2f s (median), %.2f s at most; descriptors %.0f before, %.0f after; resident %.1f MiB before, %.1f MiB after",
		count, back[len(back)/2].Seconds(), back[len(back)-1].Seconds(), files, s.metric("process_open_fds", ""), resident/(1<<20),
		s.metric("process_resident_memory_bytes", "")/(1<<20))
	if measured {
		ratio := busy.perSecond() / quiet.perSecond()
		t.Logf("the other camera: %.3f frames/s, %.3f without restarts, ratio %.4f", busy.perSecond(), quiet.perSecond(), ratio)
		require.Less(t, back[len(back)-1], 10*time.Second)
		require.Greater(t, ratio, 0.99)
	}
	require.Zero(t, s.metric("edge_infer_camera_reconnects_total", bystander))
	require.Eventually(t, func() bool { return len(s.processes()) == 2 && s.metric("process_open_fds", "") <= files+2 }, programtest.Patience,
		100*time.Millisecond, "descriptors or processes stay behind")
	left := s.processes()
	require.NoError(t, s.Stop(syscall.SIGTERM), "%s", s.Stderr)
	for _, pid := range left {
		require.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH, "a process stays behind")
	}
}

package main

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
	"github.com/edge-infer/edge-infer/mqtt/mqtttest"
)

// storage runs daemons that are killed, or that find their files damaged or their disk full. They publish to mosquitto.
type storage struct {
	t      *testing.T
	broker *mqtttest.Mosquitto
	state  string      // directory of the daemon that is killed
	events *eventCheck // its events
	kills  int
	power  *powerCuts
}

func newStorage(t *testing.T) *storage {
	s := &storage{t: t, state: t.TempDir(), broker: mqtttest.StartMosquitto(t, "allow_anonymous true", "max_queued_messages 0")}
	s.events = newEventCheck(t, s.broker.Address, "killed", "owner", "", "")
	s.power = newPowerCuts(t, s.broker.Address)
	return s
}

// start starts a daemon under a name with its own state directory.
func (s *storage) start(name, state string) *programtest.Program {
	p := programtest.StartWith(s.t, []string{"STATE_DIRECTORY=" + state}, s.arguments(name)...)
	p.Discard()
	return p
}

func (s *storage) arguments(name string) []string {
	return []string{
		"--name", name, "--mqtt", "tcp://" + s.broker.Address, "--camera", "near=demo?width=320&height=240&fps=5",
		"--engine", "onnxruntime=cpu",
	}
}

// until waits for an event.
func (s *storage) until(p *programtest.Program, count func() int, what string) {
	before := count()
	for begun := time.Now(); count() == before; time.Sleep(10 * time.Millisecond) {
		require.Less(s.t, time.Since(begun), 2*programtest.Patience, "%s: no event: %s", what, tail(p.Stderr))
	}
}

// kill starts the daemon, waits for an event and kills it, every second time while the broker does not answer.
func (s *storage) kill(random *rand.Rand) {
	p := s.start("killed", s.state)
	s.until(p, s.events.count, "after a kill")
	paused := s.kills%2 == 1
	if paused {
		s.broker.Pause()
	}
	time.Sleep(time.Duration(random.IntN(1500)) * time.Millisecond)
	require.NoError(s.t, p.Command.Process.Kill())
	<-p.Done
	if paused {
		s.broker.Resume()
	}
	s.kills++
}

// requireComplete runs the killed daemon once more. No event that any of its runs numbered may be missing.
func (s *storage) requireComplete() {
	p := s.start("killed", s.state)
	s.until(p, s.events.count, "after the last kill")
	require.NoError(s.t, p.Stop(syscall.SIGTERM))
	s.t.Logf("%d kills", s.kills)
	s.events.requireComplete(s.t)
}

// rot lets a daemon write its files, damages some, and requires that it publishes events with them.
func (s *storage) rot(a *arena) {
	state := s.t.TempDir()
	defer os.RemoveAll(state)
	events := newEventCheck(s.t, s.broker.Address, "rotten", fmt.Sprint("rotten", a.random.Uint64()), "", "")
	defer events.close()
	for round := range 3 {
		p := s.start("rotten", state)
		s.until(p, events.count, "with damaged files")
		if round == 1 { // leaves events in the spool
			s.broker.Pause()
			time.Sleep(time.Second)
		}
		require.NoError(s.t, p.Command.Process.Kill())
		<-p.Done
		if round == 1 {
			s.broker.Resume()
		}
		require.NoError(s.t, filepath.WalkDir(state, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || a.random.IntN(2) == 0 {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			return os.WriteFile(path, a.damaged(text), 0o600)
		}))
	}
}

// full runs a daemon on a file system of 1 MB without room, once with and once without a broker.
func (s *storage) full(a *arena) {
	state := s.t.TempDir()
	script := "mount -t tmpfs -o size=1m tmpfs " + state + " && { head -c 2000000 /dev/zero >" + state + "/filler 2>/dev/null; exec \"$@\"; }"
	own := programtest.CommandWith(s.t, []string{"STATE_DIRECTORY=" + state}, s.arguments("full")...)
	arguments := append([]string{"-rm", "sh", "-c", script, "sh", own.Path}, own.Args[1:]...)
	if exec.Command("unshare", "-rm", "true").Run() != nil {
		s.t.Log("full disk: not tried, this machine allows no user namespaces")
		return
	}
	events := newEventCheck(s.t, s.broker.Address, "full", fmt.Sprint("full", a.random.Uint64()), "", "")
	defer events.close()
	command := exec.CommandContext(s.t.Context(), "unshare", arguments...)
	command.Env = own.Env
	var stderr programtest.Buffer
	command.Stderr = &stderr
	p := &programtest.Program{Command: command, Stderr: &stderr}
	require.NoError(s.t, command.Start())
	s.until(p, events.count, "with a full disk")
	s.broker.Pause()
	time.Sleep(time.Duration(a.random.IntN(2000)) * time.Millisecond)
	s.broker.Resume()
	s.until(p, events.count, "with a full disk, after a pause of the broker")
	require.NoError(s.t, command.Process.Signal(syscall.SIGTERM))
	require.NoError(s.t, command.Wait(), "%s", &stderr)
	require.True(s.t, strings.Contains(stderr.String(), "space"), "nothing says that the disk is full: %s", &stderr)
	events.requireComplete(s.t)
}

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
	"github.com/edge-infer/edge-infer/internal/atomicfile"
	"github.com/edge-infer/edge-infer/mqtt/mqtttest"
)

// writeSynced writes files of which only the beginning and the names are synced, and returns what is.
func writeSynced(t *testing.T, directory string) (synced []byte) {
	synced = bytes.Repeat([]byte("synced"), diskPage)
	require.NoError(t, atomicfile.Write(filepath.Join(directory, "before"), synced, 0o600))
	require.NoError(t, atomicfile.Move(filepath.Join(directory, "before"), filepath.Join(directory, "synced")))
	below := filepath.Join(directory, "new", "newer")
	require.NoError(t, atomicfile.MkdirAll(below, 0o700))
	require.NoError(t, atomicfile.Write(filepath.Join(below, "synced"), synced, 0o600))
	path := filepath.Join(directory, "appended")
	require.NoError(t, atomicfile.Write(path, synced, 0o600))
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = file.Write(synced)
	require.NoError(t, err)
	require.NoError(t, file.Close())
	require.NoError(t, os.WriteFile(filepath.Join(directory, "unsynced"), synced, 0o600))
	read, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Len(t, read, 2*len(synced))
	return synced
}

// powerCuts runs a daemon with spool, event store and clips on a disk whose power is cut.
type powerCuts struct {
	directory string // where the disk is mounted
	disk      *disk
	events    *eventCheck
	confirmed map[string]bool // identifiers of events that the store has answered with, of all runs
	cuts      int
	refused   bool // this machine allows no mount
}

func newPowerCuts(t *testing.T, broker string) *powerCuts {
	return &powerCuts{
		directory: t.TempDir(), disk: newDisk(), confirmed: map[string]bool{},
		events: newEventCheck(t, broker, "cut", "owner of cut", "", ""),
	}
}

// storedEvent is an event as /api/events answers.
type storedEvent struct{ ID, Clip string }

// cut runs the daemon until it has events, and cuts the power, every second time while the broker does not answer. Before, every event that
// was confirmed before an earlier cut must be there.
func (s *storage) cut(random *rand.Rand) {
	c := s.power
	unmount, err := c.disk.mount(s.t, c.directory)
	if err != nil {
		if !c.refused {
			s.t.Logf("power cuts: not tried, this machine does not allow to mount a file system: %v", err)
		}
		c.refused = true
		return
	}
	p, page := s.startOnDisk()
	c.requireConfirmed(s.t, p, page)
	s.until(p, c.events.count, "after a power cut")
	paused := c.cuts%2 == 1
	if paused {
		s.broker.Pause()
	}
	time.Sleep(time.Duration(random.IntN(1500)) * time.Millisecond)
	clip, before := c.confirm(s.t, page)
	require.NoError(s.t, p.Command.Process.Kill())
	<-p.Done
	if paused {
		s.broker.Resume()
	}
	require.NoError(s.t, unmount())
	c.disk = c.disk.afterPowerCut(random)
	c.cuts++
	if clip != "" {
		c.requireClip(s.t, clip, before)
	}
}

// startOnDisk starts the daemon and returns the address of its page.
func (s *storage) startOnDisk() (p *programtest.Program, page string) {
	address := mqtttest.FreeAddress(s.t)
	environment := []string{"STATE_DIRECTORY=" + s.power.directory, "EDGE_INFER_CLIPS_BEFORE=1s", "EDGE_INFER_CLIPS_AFTER=1s"}
	p = programtest.StartWith(s.t, environment, append(s.arguments("cut"), "--clips", "--web", address)...)
	p.Discard()
	return p, "http://" + address
}

// get requests a path until the page answers.
func (c *powerCuts) get(t *testing.T, p *programtest.Program, url string) []byte {
	t.Helper()
	var last error
	for begun := time.Now(); time.Since(begun) < programtest.Patience; time.Sleep(20 * time.Millisecond) {
		response, err := programtest.Visitor(t).Get(url)
		if err != nil {
			last = err
			continue
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err == nil && response.StatusCode == http.StatusOK {
			return body
		}
		last = fmt.Errorf("%s: %s %w", response.Status, body, err)
	}
	require.NoError(t, last, "%s: %s", url, tail(p.Stderr))
	return nil
}

// requireConfirmed requires that every confirmed event is stored.
func (c *powerCuts) requireConfirmed(t *testing.T, p *programtest.Program, page string) {
	t.Helper()
	stored := map[string]bool{}
	for line := range bytes.Lines(c.get(t, p, page+"/api/events.jsonl")) {
		var e storedEvent
		require.NoError(t, json.Unmarshal(line, &e))
		stored[e.ID] = true
	}
	for id := range c.confirmed {
		require.True(t, stored[id], "event %s was stored before the power was cut and is not afterwards: %s", id, tail(p.Stderr))
	}
}

// confirm notes which events are stored, and returns a clip as it is now, if there is one.
func (c *powerCuts) confirm(t *testing.T, page string) (clip string, data []byte) {
	t.Helper()
	code, body := programtest.Get(t, programtest.Visitor(t), page+"/api/events?limit=1000")
	require.Equal(t, http.StatusOK, code, "%s", body)
	var answer struct{ Events []storedEvent }
	require.NoError(t, json.Unmarshal(body, &answer))
	for _, e := range answer.Events {
		c.confirmed[e.ID] = true
	}
	for _, e := range slices.Backward(answer.Events) { // the oldest one is closed the soonest
		if e.Clip == "" {
			continue
		}
		if code, data = programtest.Get(t, programtest.Visitor(t), page+e.Clip); code == http.StatusOK {
			clip = e.Clip
		}
		break
	}
	return clip, data
}

// requireClip requires that a clip's whole seconds are there after a cut, the last of which may not have been synced yet.
func (c *powerCuts) requireClip(t *testing.T, clip string, before []byte) {
	t.Helper()
	whole := bytes.LastIndex(before, []byte("moof")) - 4
	if whole <= 0 {
		return
	}
	found := false
	var names []string
	c.disk.root.walk("", func(path string, file *diskNode) {
		if strings.HasSuffix(path, ".mp4") {
			names = append(names, path)
			found = found || bytes.HasPrefix(file.data, before[:whole])
		}
	})
	require.True(t, found, "%s: the first %d bytes of the clip were synced and are in none of %v", clip, whole, names)
}

// walk calls visit with every file.
func (n *diskNode) walk(path string, visit func(path string, file *diskNode)) {
	for name, entry := range n.entries {
		if entry.entries != nil {
			entry.walk(path+name+"/", visit)
		} else {
			visit(path+name, entry)
		}
	}
}

// requireCompleteAfterCuts runs the daemon once more. No event may be missing that it numbered, or that was confirmed as stored.
func (s *storage) requireCompleteAfterCuts() {
	c := s.power
	if c.cuts == 0 {
		return
	}
	unmount, err := c.disk.mount(s.t, c.directory)
	require.NoError(s.t, err)
	p, page := s.startOnDisk()
	c.requireConfirmed(s.t, p, page)
	s.until(p, c.events.count, "after the last power cut")
	require.NoError(s.t, p.Command.Process.Kill())
	<-p.Done
	require.NoError(s.t, unmount())
	s.t.Logf("%d power cuts, %d events confirmed as stored", c.cuts, len(c.confirmed))
	c.events.requireComplete(s.t)
}

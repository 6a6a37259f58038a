package spool

import (
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/mqtt/mqtttest"
)

// machine is a stand-in for the machine's uptime.
type machine struct {
	boot    byte
	running atomic.Int64
}

func (m *machine) pass(d time.Duration) { m.running.Add(int64(d)) }

func (m *machine) reboot() {
	m.boot++
	m.running.Store(int64(time.Second))
}

func (m *machine) open(t testing.TB, config Config) *Spool {
	t.Helper()
	s := &Spool{Config: config, Logger: mqtttest.Discard(), Notify: func() {}}
	s.clock = clock{boot: [16]byte{m.boot}, running: func() time.Duration { return time.Duration(m.running.Load()) }}
	require.NoError(t, s.Open())
	t.Cleanup(func() { s.Close() })
	return s
}

func TestAgeIsTheTimeThatTheMachineHasRun(t *testing.T) {
	m := &machine{}
	m.reboot()
	config := Config{Directory: t.TempDir(), MaxAge: 7 * time.Hour}
	s := m.open(t, config)
	s.add("first")
	m.pass(2 * time.Hour)
	assert.Equal(t, 2*time.Hour, s.Stats().Oldest)
	require.NoError(t, s.Close())

	m.pass(time.Hour) // the process is away
	s = m.open(t, config)
	assert.Equal(t, 3*time.Hour, s.Stats().Oldest)
	s.add("second")
	require.NoError(t, s.Close())

	m.reboot() // nobody knows how long the machine was off
	s = m.open(t, config)
	assert.Equal(t, 3*time.Hour, s.Stats().Oldest)
	m.pass(4 * time.Hour)
	assert.Equal(t, []string{"first", "second"}, s.drain(false))
	e, ok := s.Next(1, nil)
	require.True(t, ok)
	assert.Equal(t, 4*time.Hour, s.Age(&e))
	m.pass(time.Millisecond)
	assert.Equal(t, []string{"second"}, s.drain(false))
	require.NoError(t, s.Close())

	require.NoError(t, os.Remove(filepath.Join(config.Directory, positionName))) // the clock goes on from the newest event
	m.reboot()
	s = m.open(t, config)
	assert.LessOrEqual(t, s.Stats().Oldest, 4*time.Hour)
	m.pass(7*time.Hour + time.Millisecond)
	assert.Empty(t, s.drain(false))
	assert.Zero(t, s.Stats().Messages)
	s.balance(t)
}

// TestTheWallClockDoesNotMatter: the clock that measures age is not the one that people and time servers set.
func TestTheWallClockDoesNotMatter(t *testing.T) {
	assert.Less(t, sinceBoot(), 20*365*24*time.Hour, "a wall clock counts from 1970")
	c := machineClock()
	c.restore(&position{}, 0)
	before := c.now()
	assert.Less(t, before, time.Now().Add(-time.Hour).UnixMilli(), "not a time of day")
	time.Sleep(2 * time.Millisecond)
	assert.Greater(t, c.now(), before)
}

// TestFilesOfTheWallClockAreRead opens a file whose records have the time of day, as earlier versions wrote it: their age begins anew.
func TestFilesOfTheWallClockAreRead(t *testing.T) {
	directory := t.TempDir()
	data := []byte(oldMark)
	for n := range uint64(3) {
		data = appendRecord(data, n+1, time.Now().Add(-time.Hour*24*365).UnixMilli(), "topic",
			func(buf []byte) []byte { return append(buf, '0'+byte(n)) })
	}
	require.NoError(t, os.WriteFile(filepath.Join(directory, "0000000000000001"+segmentSuffix), data, 0o600))
	s := openSpool(t, Config{Directory: directory, MaxAge: time.Hour})
	assert.Equal(t, numbers(0, 3), s.drain(false))
	assert.Less(t, s.Stats().Oldest, time.Minute)
	s.add("3")
	assert.Equal(t, numbers(0, 4), s.drain(true))
}

func TestTheClockIsNotedWhileEventsWait(t *testing.T) {
	m := &machine{}
	m.reboot()
	config := Config{Directory: t.TempDir()}
	s := m.open(t, config)
	s.add("first")
	require.NoError(t, s.Sync())
	m.pass(time.Hour)
	require.NoError(t, s.Sync())
	assert.Equal(t, time.Hour.Milliseconds(), readPosition(config.Directory).clock-s.stored.live()[0].at)
}

package telemetry

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestMonitor(t *testing.T) {
	m := &Monitor{Reader: reader(t, machine(t, "orin-nano")), Interval: time.Millisecond}
	assert.Nil(t, m.Latest())
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		m.Run(ctx)
	}()
	latest := func() *Reading { return m.Latest() }
	require.Eventually(t, func() bool { return latest() != nil }, time.Minute, time.Millisecond)
	first := latest()
	require.NotNil(t, first)
	require.Eventually(t, func() bool { r := latest(); return r != nil && r.Time.After(first.Time) }, time.Minute, time.Millisecond)
	cancel()
	<-done
	assert.Equal(t, "25W", first.PowerMode)
}

func TestOldReadingIsNoReading(t *testing.T) {
	m := &Monitor{}
	m.latest.Store(&Reading{Time: time.Now().Add(-10 * time.Second)})
	assert.NotNil(t, m.Latest())
	m.latest.Store(&Reading{Time: time.Now().Add(-20 * time.Second)})
	assert.Nil(t, m.Latest())
}

// A named pipe that nobody writes to would hold a careless reader for ever.
func TestPipeDoesNotBlock(t *testing.T) {
	root := t.TempDir()
	write(t, root, "/proc/meminfo", "MemTotal: 1 kB\n")
	require.NoError(t, unix.Mkfifo(filepath.Join(root, "/proc/stat"), 0o600))
	assert.Equal(t, int64(1024), reader(t, root).Read().Memory.Total)
}

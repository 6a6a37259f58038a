package spool

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/mqtt/ledger"
)

// TestCloseSaysWhatIsLost: a spool that cannot be used is reported at the start; its end is an error only when that costs events.
func TestCloseSaysWhatIsLost(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	unusable := filepath.Join(file, "spool")
	s := openSpool(t, Config{Directory: unusable})
	s.add("delivered")
	s.drain(true)
	assert.NoError(t, s.Close())
	assert.Equal(t, ledger.Account{Offered: 1, Delivered: 1}, s.balance(t))

	s = openSpool(t, Config{Directory: unusable})
	s.add("waiting")
	s.add("waiting")
	assert.EqualError(t, s.Close(), "close event spool: 2 events are lost: mkdir "+file+": not a directory")
	assert.NoError(t, s.Close(), "said once")
	s.add("late")
	assert.Equal(t, ledger.Account{Offered: 3, Dropped: 3}, s.balance(t))

	s = openSpool(t, Config{})
	s.add("in memory, as was asked for")
	assert.NoError(t, s.Close())
	assert.Equal(t, ledger.Account{Offered: 1, Dropped: 1}, s.balance(t))
}

// TestCloseOnAFailingDisk: events on disk are queued for the next start, the others are dropped and counted.
func TestCloseOnAFailingDisk(t *testing.T) {
	directory := filepath.Join(t.TempDir(), "spool")
	s := openSpool(t, Config{Directory: directory, Commit: time.Hour, MaxBytes: 1 << 20})
	const size = 1000 // of an event; a segment takes 64 of them
	for i := range 100 {
		s.add(fmt.Sprintf("%d %0*d", i, size, 0))
		if i == 69 {
			require.NoError(t, s.Sync())
		}
	}
	require.NoError(t, os.Rename(directory, directory+"2")) // no segment can be added
	segment := filepath.Join(directory, "0000000000000047.events")
	require.EqualError(t, s.Close(), "close event spool: 30 events are lost: open "+segment+": no such file or directory")
	assert.Equal(t, ledger.Account{Offered: 100, Dropped: 30, Queued: 70}, s.balance(t))
	_, ok := s.Next(0, nil)
	assert.False(t, ok, "its files are closed")
	assert.Equal(t, 70, s.Stats().Messages)

	s = openSpool(t, Config{Directory: directory + "2"})
	assert.Len(t, s.drain(true), 70)
	assert.Equal(t, ledger.Account{Offered: 70, Delivered: 70}, s.balance(t))
}

// stuck is a log that takes no more lines: its writer hangs as it does on a dead disk.
type stuck struct{ release chan struct{} }

func (s stuck) Write(p []byte) (int, error) {
	<-s.release
	return len(p), nil
}

func TestCloseDoesNotWaitForWhatHangs(t *testing.T) {
	directory := filepath.Join(t.TempDir(), "spool")
	log := stuck{make(chan struct{})}
	s := &Spool{Config: Config{Directory: directory, Commit: time.Hour, CloseLimit: 50 * time.Millisecond}, Notify: func() {}}
	s.Logger = slog.New(slog.NewTextHandler(log, nil))
	require.NoError(t, s.Open())
	require.NoError(t, os.RemoveAll(directory)) // it will want to complain
	s.add("1")
	assert.EqualError(t, s.Close(), "close event spool: 1 events are lost: the disk has not answered for 50ms")
	assert.Equal(t, ledger.Account{Offered: 1, Dropped: 1}, s.balance(t))
	assert.NoError(t, s.CloseWithin(0))
	close(log.release)
	<-s.stopped
	assert.Equal(t, ledger.Account{Offered: 1, Dropped: 1}, s.balance(t), "the writer finds nothing more to write")
}

func TestStats(t *testing.T) {
	directory := t.TempDir()
	s := openSpool(t, Config{Directory: directory, Commit: time.Hour})
	assert.Equal(t, Stats{}, s.Stats())
	s.add("12345")
	s.add("67890")
	stats := s.Stats()
	assert.Equal(t, 2, stats.Messages)
	assert.Equal(t, int64(2*(recordHeader+10)), stats.Bytes)
	require.NoError(t, os.Rename(directory, directory+"2"))
	require.ErrorIs(t, s.Sync(), os.ErrNotExist)
	stats = s.Stats()
	assert.Equal(t, uint64(1), stats.Failures)
	assert.Contains(t, stats.Error, "no such file or directory")
	require.NoError(t, os.Rename(directory+"2", directory))
	require.NoError(t, s.Sync())
	assert.Empty(t, s.Stats().Error)
	assert.Equal(t, uint64(1), s.Stats().Failures)
}

func TestDirName(t *testing.T) {
	seen := map[string]string{}
	for name, want := range map[string]string{
		"gate": "gate", "gate 7": "gate 7", "..": "%2E%2E_", ".": "%2E_", "": "_", "...": "%2E%2E%2E_", "a/../b": "a%2F..%2Fb",
		"%2E%2E_": "%252E%252E_", ".x": ".x",
		"Tür": "Tür",
	} {
		got := DirName(name)
		assert.Equal(t, want, got)
		assert.Equal(t, filepath.Join("state", got), filepath.Clean("state/"+got), "it stays where it is put")
		assert.Empty(t, seen[got])
		seen[got] = name
	}
}

func TestDrop(t *testing.T) {
	s := openSpool(t, Config{Directory: t.TempDir(), Commit: time.Hour})
	for i := range 6 {
		s.add(numbers(i, i+1)[0])
		if i == 2 {
			require.NoError(t, s.Sync())
		}
	}
	s.Drop(2) // on disk, in the middle
	s.Drop(5) // in memory
	s.Drop(1) // the oldest
	s.Drop(1)
	assert.Equal(t, []string{"2", "3", "5"}, s.drain(true))
	a := s.balance(t)
	assert.Equal(t, [2]uint64{3, 3}, [2]uint64{a.Delivered, a.Dropped})
}

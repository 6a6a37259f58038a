package store

import (
	"io"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// smallDisk returns a directory on a file system of its own with so many bytes.
func smallDisk(t *testing.T, options string) string {
	t.Helper()
	directory := t.TempDir()
	if err := unix.Mount("tmpfs", directory, "tmpfs", 0, options); err != nil {
		t.Skipf("tmpfs not mounted, this needs root: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, unix.Unmount(directory, 0)) })
	return directory
}

// TestAFullDisk costs stored events, which are counted, and what was stored before stays. When there is room again, events are stored
// again.
func TestAFullDisk(t *testing.T) {
	directory := smallDisk(t, "size=4m")
	s := &Store{Directory: directory, Logger: discard(), retry: time.Millisecond}
	s.Open()
	t.Cleanup(func() { require.NoError(t, s.Close()) }) // before the disk is unmounted
	for i := range 50 {
		s.Add(event(i))
	}
	flush(t, s)
	ballast := directory + "/ballast"
	file, err := os.Create(ballast)
	require.NoError(t, err)
	_, err = io.Copy(file, zeros{})
	require.ErrorIs(t, err, unix.ENOSPC)
	require.NoError(t, file.Close())
	for i := 50; s.Stats().Dropped == 0; i++ {
		s.Add(event(i))
		s.Settle()
		require.Less(t, i, 10_000)
	}
	require.Eventually(t, func() bool { return s.Stats().Error != "" }, time.Minute, time.Millisecond)
	s.AddSnapshot(&Snapshot{Camera: "yard", ID: event(0).ID, Frame: make([]byte, 8<<20), Crop: []byte("x")})
	require.Eventually(t, func() bool { return s.writingImages.Load() == 0 }, time.Minute, time.Millisecond)
	require.NoError(t, os.Remove(ballast))
	last := event(20_000)
	require.Eventually(t, func() bool {
		s.Add(last)
		s.Settle()
		events, _, err := s.Events(t.Context(), Filter{Limit: 1})
		return err == nil && len(events) == 1 && events[0].ID == last.ID && s.Stats().Error == ""
	}, time.Minute, 10*time.Millisecond)
	_, err = s.Event(t.Context(), event(49).ID)
	require.NoError(t, err, "what was stored before")
	found, err := s.Event(t.Context(), event(0).ID)
	require.NoError(t, err)
	require.Zero(t, found.Frame)
}

// zeros is an endless reader.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// TestImagesLeaveTheDiskItsReserve: on a disk that is nearly full, no images are kept.
func TestImagesLeaveTheDiskItsReserve(t *testing.T) {
	directory := smallDisk(t, "size=64m")
	s := &Store{Directory: directory, Logger: discard()}
	s.Open()
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	s.Add(event(0))
	s.AddSnapshot(snapshot(event(0)))
	flush(t, s)
	found, err := s.Event(t.Context(), event(0).ID)
	require.NoError(t, err)
	require.NotZero(t, found.Frame)
	prune(t, s, func() { require.NoError(t, s.writer.prune(began, true)) })
	found, err = s.Event(t.Context(), event(0).ID)
	require.NoError(t, err)
	require.Zero(t, found.Frame)
}

package infer

import (
	"log/slog"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/annotate"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// TestAFullDiskIsReported saves a video and an image that are larger than the disk.
func TestAFullDiskIsReported(t *testing.T) {
	for _, container := range []string{annotate.AVI, annotate.Auto} {
		directory := t.TempDir()
		if err := syscall.Mount("tmpfs", directory, "tmpfs", 0, "size=160k"); err != nil {
			t.Skipf("cannot mount a small file system: %v", err)
		}
		t.Cleanup(func() { _ = syscall.Unmount(directory, syscall.MNT_DETACH) })
		s, err := newSaver(directory, container, nil, slog.New(slog.DiscardHandler))
		require.NoError(t, err)
		random := rand.NewChaCha8([32]byte{})
		for number := range 30 {
			frame := grey(640, 480, time.Duration(number)*40*time.Millisecond)
			_, _ = random.Read(frame.Data)
			if _, err = s.save("/videos/a.mp4", number, frame, &predict.Result{}, tracking{}, nil); err != nil {
				break
			}
		}
		if err == nil {
			err = s.finish()
		}
		require.ErrorContains(t, err, directory+"/a.", container)
		require.NoError(t, s.abandon(""))
		require.Empty(t, listed(t, directory))

		frame := grey(1280, 960, 0)
		_, _ = random.Read(frame.Data)
		_, err = s.save("/videos/b.png", 0, frame, &predict.Result{}, tracking{}, nil)
		require.ErrorContains(t, err, directory+"/b.png")
		require.Empty(t, listed(t, directory))
	}
}

package source

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/internal/testtool"
)

// motionJPEG makes a video of single JPEG images.
func motionJPEG(t *testing.T, frames int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "video.avi")
	output, err := exec.Command(testtool.Program(t, "ffmpeg"), "-v", "error", "-i", barcodeVideo(t, "video.mp4", frames, 320, 240, 10),
		"-c:v", "mjpeg", "-q:v", "2", path).CombinedOutput()
	require.NoError(t, err, string(output))
	return path
}

// TestDamageCostsAFilmNothingElse: an image that cannot be decoded is not its end.
func TestVideoContinuesAfterDamage(t *testing.T) {
	path := motionJPEG(t, 30)
	video, err := os.ReadFile(path)
	require.NoError(t, err)
	for at, number := bytes.Index(video, []byte("movi")), 0; number < 12; number++ {
		next := bytes.Index(video[at:], []byte("00dc"))
		require.GreaterOrEqual(t, next, 0)
		if at += next + 8; number == 3 || number >= 9 { // behind the chunk's name and size
			clear(video[at : at+200])
		}
	}
	require.NoError(t, os.WriteFile(path, video, 0o600))
	opened, err := open(context.Background(), path, settings{Options: capture.Options{EveryFrame: true}, backend: byFFmpeg})
	require.NoError(t, err)
	defer opened.Close()
	pool := &capture.Pool{}
	defer pool.Close()
	var numbers []int
	damaged := 0
	for {
		f, err := opened.Next(pool)
		if errors.Is(err, io.EOF) {
			break
		}
		if errors.Is(err, capture.ErrImage) {
			damaged++
			continue
		}
		require.NoError(t, err)
		numbers = append(numbers, readBarcode(f))
		f.Release()
	}
	assert.Positive(t, damaged)
	assert.Subset(t, numbers, upTo(30)[12:])
	assert.Subset(t, numbers, []int{0, 1, 2, 4, 5, 6, 7, 8})
}

// TestPipesAreRefused: no process writes into this pipe.
func TestPipesAreRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe.jpg")
	require.NoError(t, unix.Mkfifo(path, 0o600))
	_, err := Open(context.Background(), path, capture.Options{EveryFrame: true})
	require.EqualError(t, err, "open "+path+": a pipe or socket, not a file (write what comes out of it to a file first)")
	path = filepath.Join(t.TempDir(), "empty.mp4")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	_, err = Open(context.Background(), path, capture.Options{EveryFrame: true})
	require.EqualError(t, err, "open "+path+": the file is empty (copy it again)")
}

// TestAFilmKnowsWhereItShouldEnd: cut in half it gives its images without a word.
func TestVideoProgress(t *testing.T) {
	path := motionJPEG(t, 40)
	length := func() (reached, told time.Duration) {
		opened, err := Open(context.Background(), path, capture.Options{EveryFrame: true})
		require.NoError(t, err)
		defer opened.Close()
		pool := &capture.Pool{}
		defer pool.Close()
		for err == nil || errors.Is(err, capture.ErrImage) {
			var f capture.Frame
			if f, err = opened.Next(pool); err == nil {
				assert.EqualValues(t, 10, f.FPS)
				f.Release()
			}
		}
		require.ErrorIs(t, err, io.EOF)
		return opened.(capture.Video).Progress()
	}
	reached, told := length()
	assert.Equal(t, 3900*time.Millisecond, reached)
	assert.Equal(t, 4*time.Second, told)
	video, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, video[:len(video)/2], 0o600))
	reached, told = length()
	assert.Less(t, reached, 3*time.Second)
	assert.Equal(t, 4*time.Second, told)
}

// TestVideoFromServerEnds: with EveryFrame a video from a server ends like a file; for a camera the end is a failure.
func TestVideoFromServerEnds(t *testing.T) {
	path := motionJPEG(t, 20)
	server := httptest.NewServer(http.FileServer(http.Dir(filepath.Dir(path))))
	defer server.Close()
	url := server.URL + "/" + filepath.Base(path)
	assert.Equal(t, upTo(20), readAll(t, Open, url, capture.Options{EveryFrame: true}, nil))
	opened, err := Open(context.Background(), url, capture.Options{})
	require.NoError(t, err)
	defer opened.Close()
	assert.True(t, opened.Live())
}

package record

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/mp4"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/mp4/mp4test"
	"github.com/edge-infer/edge-infer/internal/testtool"
)

// encode is mp4test.Encode.
func encode(t testing.TB, encoder string, seconds int, gop time.Duration, options ...string) []capture.Unit {
	t.Helper()
	return mp4test.Encode(t, encoder, seconds, gop, options...)
}

// write returns a file with the units.
func write(t testing.TB, units []capture.Unit) []byte {
	t.Helper()
	v, err := mp4.New(&units[0])
	require.NoError(t, err)
	v.FragmentLength = fragmentLength
	file, err := v.Header()
	require.NoError(t, err)
	for i := range units {
		require.True(t, v.Accepts(&units[i]))
		fragment, err := v.Add(&units[i])
		require.NoError(t, err)
		file = append(file, fragment...)
	}
	fragment, err := v.Flush()
	require.NoError(t, err)
	return append(file, fragment...)
}

// probe reads a file with ffprobe, which must not complain, and decodes it. It returns the number of frames, the codec's tag and the
// duration in seconds.
func probe(t testing.TB, path string) (frames int, tag string, seconds float64) {
	t.Helper()
	command := exec.Command(testtool.Program(t, "ffprobe"), "-v", "warning", "-count_frames", "-show_entries",
		"stream=codec_tag_string,nb_read_frames:format=duration", "-of", "default=noprint_wrappers=1:nokey=1", path)
	var complaints bytes.Buffer
	command.Stderr = &complaints
	out, err := command.Output()
	require.NoError(t, err, "%s", complaints.String())
	require.Empty(t, complaints.String(), path)
	_, err = fmt.Sscan(strings.ReplaceAll(string(out), "\n", " "), &tag, &frames, &seconds)
	require.NoError(t, err, "%s", out)
	return frames, tag, seconds
}

func TestVideo(t *testing.T) {
	for _, test := range []struct {
		name, encoder string
		options       []string
		tag           string
	}{
		{"H.264", "libx264", nil, "avc1"},
		{"H.264 with B-frames", "libx264", []string{"-bf", "3", "-x264-params", "b-adapt=0"}, "avc1"},
		{"H.265 with B-frames", "libx265", nil, "hvc1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			units := encode(t, test.encoder, 6, 2*time.Second, test.options...)
			require.Len(t, units, 150)
			file := write(t, units)
			path := filepath.Join(t.TempDir(), "clip.mp4")
			require.NoError(t, os.WriteFile(path, file, 0o600))
			frames, tag, seconds := probe(t, path)
			assert.Equal(t, 150, frames)
			assert.Equal(t, test.tag, tag)
			assert.InDelta(t, 6, seconds, 0.2)

			whole, err := readContents(bytes.NewReader(file), int64(len(file)))
			require.NoError(t, err)
			assert.Equal(t, int64(len(file)), whole.size)
			assert.InDelta(t, seconds, whole.duration.Seconds(), 0.2)
		})
	}
}

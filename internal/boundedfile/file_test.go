package boundedfile

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, pipe := filepath.Join(dir, "file"), filepath.Join(dir, "pipe")
	require.NoError(t, os.WriteFile(file, []byte("12345"), 0o600))
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	text, err := Read(file, 5)
	require.NoError(t, err)
	assert.Equal(t, "12345", string(text))
	for path, want := range map[string]string{
		pipe:                       "read " + pipe + ": a pipe or a device, not a regular file",
		"/dev/zero":                "read /dev/zero: a pipe or a device, not a regular file",
		dir:                        "read " + dir + ": is a directory",
		filepath.Join(dir, "none"): "open " + filepath.Join(dir, "none") + ": no such file or directory",
	} {
		_, err := Read(path, 5)
		assert.EqualError(t, err, want)
		_, err = KeyPair(path, file)
		assert.EqualError(t, err, want)
	}
	_, err = Read(file, 4)
	require.EqualError(t, err, "read "+file+": over 4 bytes")
	_, err = Read(filepath.Join(dir, "none"), 5)
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// A call that hangs is abandoned at the limit, its path is not tried again before it returns, other paths are; and the number of those that
// hang is bounded.
func TestCallsThatHang(t *testing.T) {
	t.Parallel()
	w := &waits{limit: time.Millisecond, most: 2}
	answers := make(chan struct{})
	errAtLast := errors.New("at last")
	hanging := func() (int, error) {
		<-answers
		return 1, errAtLast
	}
	_, err := within(w, "/nfs/a", hanging)
	require.EqualError(t, err, "read /nfs/a: no answer in 1ms, its file system hangs")
	_, err = within(w, "/nfs/../nfs/a", hanging)
	require.EqualError(t, err, "read /nfs/a: its file system still does not answer")
	_, err = within(w, "/nfs/b", hanging)
	require.EqualError(t, err, "read /nfs/b: no answer in 1ms, its file system hangs")
	_, err = within(w, "/nfs/c", hanging)
	require.EqualError(t, err, "read /nfs/c: 2 files wait for file systems that do not answer")

	close(answers)
	w.limit = time.Minute
	for _, path := range []string{"/nfs/a", "/nfs/b", "/nfs/c"} {
		require.Eventually(t, func() bool {
			value, err := within(w, path, hanging)
			return errors.Is(err, errAtLast) && value == 1
		}, time.Minute, time.Millisecond, path)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	assert.Zero(t, w.count, fmt.Sprint(w.abandoned))
	assert.Empty(t, w.abandoned)
}

// TestReadLarge: a file of several parts, one that ends with a part, an empty one, and what is no file.
func TestReadLarge(t *testing.T) {
	path := filepath.Join(t.TempDir(), "model.onnx")
	for _, size := range []int{0, 1, part - 1, part, part + 1, 3 * part} {
		want := make([]byte, size)
		for i := range want {
			want[i] = byte(i % 251)
		}
		require.NoError(t, os.WriteFile(path, want, 0o600))
		data, err := ReadLarge(path)
		require.NoError(t, err)
		require.True(t, bytes.Equal(want, data), "%d bytes", size)
	}
	_, err := ReadLarge(filepath.Dir(path))
	require.ErrorIs(t, err, syscall.EISDIR)
	_, err = ReadLarge(path + "x")
	require.ErrorIs(t, err, fs.ErrNotExist)
	pipe := filepath.Join(filepath.Dir(path), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	for _, err := range []error{errorOf(ReadLarge(pipe)), errorOf(Read(pipe, 10)), errorOf(Read(filepath.Dir(path), 10))} {
		require.IsType(t, new(fs.PathError), err)
	}
	_, err = ReadLarge(pipe)
	require.ErrorIs(t, err, errNotRegular)
}

func errorOf(_ []byte, err error) error { return err }

package atomicfile_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/internal/atomicfile"
)

// alone reports that the directory holds nothing but the file with that text.
func alone(t *testing.T, path, text string) {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, text, string(data))
	entries, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	assert.Len(t, entries, 1)
}

func TestWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "plan")
	require.NoError(t, atomicfile.Write(path, []byte("old"), 0o644))
	require.NoError(t, atomicfile.Write(path, []byte("new"), 0o600))
	alone(t, path, "new")
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.EqualValues(t, 0o600, info.Mode().Perm())

	err = atomicfile.Write(filepath.Join(path, "below"), nil, 0o600)
	require.Error(t, err)
	alone(t, path, "new")
}

// What is not committed leaves everything as it was.
func TestClose(t *testing.T) {
	path := filepath.Join(t.TempDir(), "plan")
	require.NoError(t, atomicfile.Write(path, []byte("old"), 0o644))
	f, err := atomicfile.Create(path, 0o644)
	require.NoError(t, err)
	_, err = f.WriteString("half of it")
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.NoError(t, f.Close())
	alone(t, path, "old")

	f, err = atomicfile.Create(path, 0o644)
	require.NoError(t, err)
	require.NoError(t, f.Commit())
	require.NoError(t, f.Close())
	alone(t, path, "")
}

// A failing Commit leaves the file as it was, and nothing beside it.
func TestCommitFails(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "directory")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "plan", "full"), 0o755))
	f, err := atomicfile.Create(filepath.Join(dir, "plan"), 0o644)
	require.NoError(t, err)
	require.Error(t, f.Commit(), "a directory stands there")
	require.NoError(t, f.Close())
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, entries, 1)
}

func TestMove(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	require.NoError(t, os.WriteFile(from, []byte("plan"), 0o600))
	require.NoError(t, atomicfile.Move(from, to))
	alone(t, to, "plan")
	require.ErrorIs(t, atomicfile.Move(from, to), os.ErrNotExist)
}

func TestAdopt(t *testing.T) {
	dir := t.TempDir()
	written, path := filepath.Join(dir, "written"), filepath.Join(dir, "image")
	require.ErrorIs(t, atomicfile.Adopt(written, path), os.ErrNotExist)
	require.NoError(t, os.WriteFile(written, []byte("new"), 0o600))
	require.NoError(t, os.WriteFile(path, []byte("old"), 0o600))
	require.NoError(t, atomicfile.Adopt(written, path))
	alone(t, path, "new")
}

func TestCheck(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, atomicfile.Check(filepath.Join(dir, "plan")))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, entries)
	assert.EqualError(t, atomicfile.Check(dir), dir+" is a directory (name the file to write)")
	err = atomicfile.Check(dir + "/none/plan")
	assert.EqualError(t, err,
		dir+"/none/plan cannot be written: no such file or directory (name a file in a directory that exists and is writable)")
	assert.True(t, errors.Is(err, os.ErrNotExist))
}

func TestMkdirAll(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a", "b")
	require.NoError(t, atomicfile.MkdirAll(path, 0o700))
	require.NoError(t, atomicfile.MkdirAll(path, 0o700), "it is there already")
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	require.ErrorContains(t, atomicfile.MkdirAll(filepath.Join(dir, "file", "x"), 0o700), "not a directory")
	require.ErrorContains(t, atomicfile.MkdirAll(filepath.Join(dir, "file"), 0o700), "not a directory")
}

package storage

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestReplace(t *testing.T) {
	directory := t.TempDir()
	path := filepath.Join(directory, "file")
	for _, want := range []string{"one", "two"} {
		require.NoError(t, Replace(path, []byte(want)))
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Equal(t, want, string(data))
	}
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	require.NoError(t, os.Mkdir(filepath.Join(directory, "folder"), 0o700))
	require.Error(t, Replace(filepath.Join(directory, "folder"), nil), "a folder is not replaced")
	require.Error(t, Replace(filepath.Join(directory, "nowhere", "file"), nil))
	left, err := os.ReadDir(directory)
	require.NoError(t, err)
	assert.Len(t, left, 2, "nothing half done is left")
}

package media

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestReaderNamesWhatItCannotRead(t *testing.T) {
	var reader Reader
	defer reader.Close()
	path := filepath.Join(t.TempDir(), "cut.jpg")
	require.NoError(t, os.WriteFile(path, []byte("\xff\xd8\xff\xe0cut"), 0o600))
	for _, path := range []string{path, path + ".absent.jpg"} {
		_, err := reader.Read(path)
		assert.ErrorContains(t, err, path)
	}
}

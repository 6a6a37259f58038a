package credentials

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSecretNeverPrints(t *testing.T) {
	var log bytes.Buffer
	s := Secret("hunter2")
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "secret", s, "inside", struct{ S Secret }{s}, slog.Any("any", s))
	marshalled, err := json.Marshal(map[string]any{"secret": s, "list": []Secret{s}})
	require.NoError(t, err)
	all := log.String() + string(marshalled) + fmt.Sprintf("%s %v %+v %#v %q %+v %#v", s, s, s, s, s, struct{ S Secret }{s},
		struct{ S Secret }{s}) +
		fmt.Errorf("wrapped %v", s).Error()
	assert.NotContains(t, all, "hunter2")
	assert.Contains(t, all, secretMark)
	assert.Empty(t, Secret("").String())
}

func TestReadSecret(t *testing.T) {
	file := filepath.Join(t.TempDir(), "password")
	for content, want := range map[string]string{"a": "a", "a\n": "a", "a\r\n": "a", "a\n\n": "a\n", " a ": " a ", "": ""} {
		require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
		got, err := ReadSecret("unused", file)
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
	_, err := ReadSecret("", file+"2")
	assert.ErrorIs(t, err, os.ErrNotExist)
}

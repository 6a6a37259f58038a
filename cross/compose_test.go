package cross

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/require"
)

// TestCompose: what deploy/compose mounts is there, and its camera's image is one that is loaded, not built.
func TestCompose(t *testing.T) {
	const dir = "../deploy/compose"
	text, err := os.ReadFile(filepath.Join(dir, "compose.yaml"))
	require.NoError(t, err)
	var compose struct {
		Services map[string]struct {
			Image   string
			Volumes []string
		}
		Volumes map[string]any
	}
	require.NoError(t, yaml.Unmarshal(text, &compose))
	require.Equal(t, "edge-infer", compose.Services["edge-infer"].Image)
	for name, service := range compose.Services {
		require.NotEmpty(t, service.Image, name)
		for _, volume := range service.Volumes {
			source, _, _ := strings.Cut(volume, ":")
			if strings.HasPrefix(source, ".") {
				_, err := os.Stat(filepath.Join(dir, source))
				require.NoError(t, err, name)
			} else {
				require.Contains(t, compose.Volumes, source)
			}
		}
	}
}

package cross

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/require"
)

// TestDockerfile keeps the image's steps to what is checked without containers: targets of the Makefile and scripts of this directory.
func TestDockerfile(t *testing.T) {
	text, err := os.ReadFile("docker/Dockerfile")
	require.NoError(t, err)
	makefile, err := os.ReadFile("../Makefile")
	require.NoError(t, err)
	copied := map[string]string{} // by the path in the image
	runs, user := 0, false
	for _, line := range strings.Split(string(text), "\n") {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(line, "#") {
			continue
		}
		switch words[0] {
		case "FROM", "ARG", "WORKDIR", "ENV", "VOLUME", "ENTRYPOINT", "CMD":
		case "USER":
			user = words[1] != "root"
		case "COPY":
			for _, source := range words[1 : len(words)-1] {
				if words[1] == "." || strings.Contains(line, "--from=build") {
					continue
				}
				require.FileExists(t, filepath.Join("..", source))
				copied[words[len(words)-1]+filepath.Base(source)] = filepath.Join("..", source)
			}
		case "RUN":
			runs++
			require.NotRegexp(t, `[|&;<>$]`, line, "one program a step, no shell")
			if words[1] == "make" {
				require.Len(t, words, 3)
				require.Regexp(t, regexp.MustCompile("(?m)^"+words[2]+":"), string(makefile))
				continue
			}
			require.Len(t, words, 2)
			info, err := os.Stat(copied[words[1]])
			require.NoError(t, err, line)
			require.NotZero(t, info.Mode()&0o111)
		default:
			t.Fatalf("unexpected step: %s", line)
		}
	}
	require.Equal(t, 2, runs)
	require.True(t, user, "must not run as root")
}

func TestCompose(t *testing.T) {
	text, err := os.ReadFile("docker/compose.yaml")
	require.NoError(t, err)
	var compose struct {
		Services map[string]struct {
			Image   string
			Build   struct{ Context, Dockerfile string }
			Command []string
			Volumes []string
		}
		Volumes map[string]any
	}
	require.NoError(t, yaml.Unmarshal(text, &compose))
	build := compose.Services["edge-infer"].Build
	require.FileExists(t, filepath.Join("docker", build.Context, build.Dockerfile))
	for name, service := range compose.Services {
		require.True(t, service.Image != "" || service.Build.Context != "", name)
		for _, volume := range service.Volumes {
			source, _, _ := strings.Cut(volume, ":")
			if strings.HasPrefix(source, ".") {
				require.FileExists(t, filepath.Join("docker", source))
			} else {
				require.Contains(t, compose.Volumes, source)
			}
		}
	}
	require.Contains(t, compose.Services["edge-infer"].Command, "tcp://mosquitto:1883")
}

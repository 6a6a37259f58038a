package main

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/stretchr/testify/require"
)

// releaseEnvironment names the directory of the release's images; make package-check sets it.
const releaseEnvironment = "EDGE_INFER_TEST_RELEASE"

var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

// released returns the root directory and the configuration of an architecture's released image, or skips the test.
func released(t *testing.T, arch string) (root string, config *v1.ConfigFile) {
	dir := os.Getenv(releaseEnvironment)
	if dir == "" {
		t.Skip(releaseEnvironment + " names no directory of images: make package-check")
	}
	archives, err := filepath.Glob(filepath.Join(dir, "*-linux-"+arch+".oci.tar"))
	require.NoError(t, err)
	require.Len(t, archives, 1, "images for %s in %s", arch, dir)
	image, _ := ociImage(t, unpacked(t, archives[0]))
	config, err = image.ConfigFile()
	require.NoError(t, err)
	layers, err := image.Layers()
	require.NoError(t, err)
	root = t.TempDir()
	for _, layer := range layers {
		content, err := layer.Uncompressed()
		require.NoError(t, err)
		command := exec.Command("tar", "-x", "--no-same-owner", "-C", root)
		command.Stdin = content
		output, err := command.CombinedOutput()
		require.NoError(t, err, "%s", output)
		require.NoError(t, content.Close())
	}
	return root, config
}

// TestReleasedFiles: the image has every library that its programs load at start, for its own architecture, and the licence of each
// package.
func TestReleasedFiles(t *testing.T) {
	for arch, machine := range machines {
		t.Run(arch, func(t *testing.T) {
			root, config := released(t, arch)
			require.Equal(t, arch, config.Architecture)
			directories, err := filepath.Glob(filepath.Join(root, "usr/lib/*-linux-gnu"))
			require.NoError(t, err)
			require.Len(t, directories, 1)
			triple := filepath.Base(directories[0])
			for _, program := range []string{"usr/bin/edge-infer", "usr/lib/edge-infer/libonnxruntime.so.1"} {
				file, err := elf.Open(filepath.Join(root, program))
				require.NoError(t, err)
				require.Equal(t, machine, file.Machine, program)
				needed, err := file.ImportedLibraries()
				require.NoError(t, err)
				require.NoError(t, file.Close())
				for _, library := range needed {
					places := []string{filepath.Join(root, "lib", triple, library), filepath.Join(directories[0], library)}
					require.True(t, slices.ContainsFunc(places, exists), "%s needs %s", program, library)
				}
			}
			packages, err := os.ReadDir(filepath.Join(root, "var/lib/dpkg/status.d"))
			require.NoError(t, err)
			require.NotEmpty(t, packages)
			for _, one := range packages {
				require.FileExists(t, filepath.Join(root, "usr/share/doc", one.Name(), "copyright"))
			}
			require.FileExists(t, filepath.Join(root, "usr/share/doc/edge-infer/copyright"))
			require.FileExists(t, filepath.Join(root, "usr/share/doc/edge-infer-onnxruntime/copyright"))
			certificates, err := os.ReadFile(filepath.Join(root, "etc/ssl/certs/ca-certificates.crt"))
			require.NoError(t, err)
			require.Greater(t, strings.Count(string(certificates), "BEGIN CERTIFICATE"), 100)
		})
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// start runs a command of the image in its own files as its own user, without rights on this machine: the user is the one of the test,
// under another number. Only /dev and /proc are this machine's, as with a container engine.
func start(t *testing.T, root string, config *v1.ConfigFile, arguments ...string) string {
	for _, mount := range []string{"dev", "proc"} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, mount), 0o755))
	}
	user, group, _ := strings.Cut(config.Config.User, ":")
	script := `root=$1 directory=$2 user=$3 group=$4
mount --rbind /dev "$root/dev" && mount --rbind /proc "$root/proc" &&
	exec unshare --user --map-user="$user" --map-group="$group" --root="$root" --wd="$directory" "${@:5}"`
	command := exec.Command("unshare", slices.Concat(
		[]string{"--user", "--map-root-user", "--mount", "bash", "-c", script, "bash", root, config.Config.WorkingDir, user, group},
		config.Config.Entrypoint, arguments)...)
	command.Env = config.Config.Env
	var errors strings.Builder
	command.Stderr = &errors
	output, err := command.Output()
	require.NoError(t, err, "%s%s", output, errors.String())
	return string(output)
}

// TestReleasedImageStarts runs the image of this architecture in a chroot of its layers, without root and without a container engine.
func TestReleasedImageStarts(t *testing.T) {
	root, config := released(t, runtime.GOARCH)
	if output, err := exec.Command("unshare", "--user", "--map-root-user", "--mount", "true").CombinedOutput(); err != nil {
		t.Skipf("no user namespaces here: %s", output)
	}
	version := config.Config.Labels["org.opencontainers.image.version"]
	require.Regexp(t, "^edge-infer "+regexp.QuoteMeta(version)+" .*linux/"+runtime.GOARCH+"\n$", start(t, root, config, "version"))
	frames := start(t, root, config, "--camera", "demo", "--frames", "10", "--mqtt", "off", "--json")
	require.Equal(t, 10, strings.Count(frames, `"seq"`))
	require.Regexp(t, regexp.MustCompile(`"label":"\w+"`), frames)
}

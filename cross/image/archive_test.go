package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/stretchr/testify/require"
)

// epoch is the time of the commit of the test's images.
const epoch = "1764288000"

// treeFiles are those of a package's tree that an image takes, with their modes; cross/package makes more.
var treeFiles = map[string]os.FileMode{
	"bin/edge-infer": 0o755, "lib/edge-infer/libonnxruntime.so.1": 0o644, "share/doc/edge-infer/copyright": 0o644,
	"doc/edge-infer-onnxruntime/copyright": 0o644, "share/edge-infer/edge-infer.schema.json": 0o644, "etc/edge-infer.yaml": 0o644,
	"etc/mqtt-password": 0o600, "systemd/edge-infer.service": 0o644,
}

// files writes files whose contents are their names.
func files(t *testing.T, dir string, modes map[string]os.FileMode) {
	for name, mode := range modes {
		file := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(name), mode))
	}
}

// archive makes an image of small files with a file creation mask, as cross/package does, and returns its path.
func archive(t *testing.T, mask string) string {
	dir := t.TempDir()
	tree := filepath.Join(dir, "tree")
	base := filepath.Join(dir, "base")
	files(t, tree, treeFiles)
	files(t, base, map[string]os.FileMode{
		"lib/libc.so.6": 0o755, "usr/lib/libstdc++.so.6.0.30": 0o644, "etc/ssl/certs/ca-certificates.crt": 0o600,
	})
	require.NoError(t, os.Symlink("libstdc++.so.6.0.30", filepath.Join(base, "usr/lib/libstdc++.so.6")))
	require.NoError(t, os.Link(filepath.Join(base, "lib/libc.so.6"), filepath.Join(base, "lib/other")))
	out := filepath.Join(dir, "image.oci.tar")
	command := exec.Command("bash", "-c", `umask "$1" && exec "${@:2}"`, "bash", mask,
		"../image-archive", "arm64", "1.2.0", "0123abc", tree, base, out)
	command.Env = append(os.Environ(), "SOURCE_DATE_EPOCH="+epoch)
	output, err := command.CombinedOutput()
	require.NoError(t, err, "%s", output)
	return out
}

// unpacked returns a directory with the files of a tar archive.
func unpacked(t *testing.T, archive string) string {
	dir := t.TempDir()
	output, err := exec.Command("tar", "-x", "-f", archive, "-C", dir).CombinedOutput()
	require.NoError(t, err, "%s", output)
	return dir
}

// ociImage returns the only image of an OCI layout and its descriptor in the index.
func ociImage(t *testing.T, dir string) (v1.Image, v1.Descriptor) {
	index, err := layout.ImageIndexFromPath(dir)
	require.NoError(t, err)
	manifest, err := index.IndexManifest()
	require.NoError(t, err)
	require.Len(t, manifest.Manifests, 1)
	image, err := index.Image(manifest.Manifests[0].Digest)
	require.NoError(t, err)
	return image, manifest.Manifests[0]
}

// TestArchiveIsReproducible: neither the directory, the time nor the mask of file modes is in the bytes.
func TestArchiveIsReproducible(t *testing.T) {
	first, err := os.ReadFile(archive(t, "022"))
	require.NoError(t, err)
	time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second))) // files have another time
	second, err := os.ReadFile(archive(t, "077"))
	require.NoError(t, err)
	require.True(t, bytes.Equal(first, second))
}

// TestArchiveFormats: podman and skopeo read the OCI layout, and any Docker the manifest.json of docker save; both are the same image.
func TestArchiveFormats(t *testing.T) {
	file := archive(t, "022")
	dir := unpacked(t, file)
	image, descriptor := ociImage(t, dir)
	require.Equal(t, &v1.Platform{OS: "linux", Architecture: "arm64"}, descriptor.Platform)
	require.Equal(t, map[string]string{
		"org.opencontainers.image.ref.name": "localhost/edge-infer:1.2.0", "io.containerd.image.name": "localhost/edge-infer:1.2.0",
	}, descriptor.Annotations)
	tag, err := name.NewTag("localhost/edge-infer:1.2.0")
	require.NoError(t, err)
	saved, err := tarball.ImageFromPath(file, &tag)
	require.NoError(t, err)
	want, err := image.ConfigName()
	require.NoError(t, err)
	got, err := saved.ConfigName()
	require.NoError(t, err)
	require.Equal(t, want, got)

	var manifest []struct {
		Config string
		Layers []string
	}
	text, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &manifest))
	require.Len(t, manifest[0].Layers, 3)
	for _, blob := range append(manifest[0].Layers, manifest[0].Config) {
		content, err := os.ReadFile(filepath.Join(dir, blob))
		require.NoError(t, err)
		require.Equal(t, path.Base(blob), fmt.Sprintf("%x", sha256.Sum256(content)))
	}
}

func TestConfiguration(t *testing.T) {
	image, _ := ociImage(t, unpacked(t, archive(t, "022")))
	file, err := image.ConfigFile()
	require.NoError(t, err)
	created := time.Date(2025, 11, 28, 0, 0, 0, 0, time.UTC)
	require.Equal(t, created, file.Created.UTC())
	require.Equal(t, "linux/arm64", file.OS+"/"+file.Architecture)
	require.Equal(t, v1.Config{
		User: "65532:65532",
		Env: []string{
			"PATH=/usr/bin", "HOME=/var/lib/edge-infer", "STATE_DIRECTORY=/var/lib/edge-infer", "CACHE_DIRECTORY=/var/cache/edge-infer",
		},
		WorkingDir: "/var/lib/edge-infer",
		Entrypoint: []string{"/usr/bin/edge-infer"},
		Cmd:        []string{"--config", "/etc/edge-infer/edge-infer.yaml"},
		Volumes:    map[string]struct{}{"/var/lib/edge-infer": {}, "/var/cache/edge-infer": {}},
		Labels: map[string]string{
			"org.opencontainers.image.title":       "edge-infer",
			"org.opencontainers.image.description": "Camera detection sensor: TensorRT or ONNX Runtime, results over MQTT",
			"org.opencontainers.image.version":     "1.2.0",
			"org.opencontainers.image.revision":    "0123abc",
			"org.opencontainers.image.created":     "2025-11-28T00:00:00Z",
			"org.opencontainers.image.source":      "https://github.com/edge-infer/edge-infer",
			"org.opencontainers.image.licenses":    "Apache-2.0",
		},
	}, file.Config)
}

// entry is what a layer says of a file.
type entry struct {
	mode  int64
	owner int
}

// TestLayers: everything is root's and readable by all but what the program writes; nothing of the package that has no use here is in it.
func TestLayers(t *testing.T) {
	image, _ := ociImage(t, unpacked(t, archive(t, "077")))
	layers, err := image.Layers()
	require.NoError(t, err)
	var found []map[string]entry
	for _, layer := range layers {
		found = append(found, entries(t, layer))
	}
	require.Equal(t, []map[string]entry{
		{
			"lib/libc.so.6": {0o755, 0}, "lib/other": {0o755, 0}, "usr/lib/libstdc++.so.6": {0o755, 0}, "usr/lib/libstdc++.so.6.0.30": {0o644, 0},
			"etc/ssl/certs/ca-certificates.crt": {0o644, 0},
		},
		{
			"usr/bin/edge-infer": {0o755, 0}, "usr/lib/edge-infer/libonnxruntime.so.1": {0o644, 0}, "usr/share/doc/edge-infer/copyright": {0o644, 0},
			"usr/share/doc/edge-infer-onnxruntime/copyright": {0o644, 0}, "usr/share/edge-infer/edge-infer.schema.json": {0o644, 0},
			"etc/edge-infer/edge-infer.yaml": {0o644, 0},
		},
		{"var/lib/edge-infer/": {0o700, 65532}, "var/cache/edge-infer/": {0o700, 65532}, "tmp/": {0o1777, 0}},
	}, found)
}

// entries returns a layer's files, and its directories that are not root's with mode 755. Every time in it is the commit's.
func entries(t *testing.T, layer v1.Layer) map[string]entry {
	content, err := layer.Uncompressed()
	require.NoError(t, err)
	defer content.Close()
	all := map[string]entry{}
	for reader := tar.NewReader(content); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		require.Equal(t, time.Date(2025, 11, 28, 0, 0, 0, 0, time.UTC), header.ModTime.UTC(), header.Name)
		require.Equal(t, header.Uid, header.Gid)
		found := entry{header.Mode, header.Uid}
		directory := header.Typeflag == tar.TypeDir
		if directory && found == (entry{0o755, 0}) {
			continue
		}
		file := path.Clean(header.Name)
		if directory {
			file += "/"
		}
		all[file] = found
	}
}

func TestRunRefuses(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "none.tar")
	t.Setenv("SOURCE_DATE_EPOCH", "")
	require.ErrorContains(t, run(&release{}, "", nil), "SOURCE_DATE_EPOCH: ")
	t.Setenv("SOURCE_DATE_EPOCH", epoch)
	require.EqualError(t, run(&release{}, "", nil), "all flags and at least one layer must be given")
	full := release{arch: "amd64", version: "1.2.0", revision: "0123abc"}
	err := run(&full, filepath.Join(t.TempDir(), "layout"), []string{missing})
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, "layer "+missing+": ")
}

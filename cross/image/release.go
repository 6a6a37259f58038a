package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	oci "github.com/opencontainers/image-spec/specs-go/v1"
)

const (
	// repository is the image's name without its tag. podman and Docker keep a name with this host as it is, and neither asks a registry
	// for it.
	repository = "localhost/edge-infer"
	// user is a number, so that Kubernetes can see that it is not root. cross/image-archive gives it the state and the cache.
	user = "65532:65532"
)

// release is what is known of an image besides its files.
type release struct {
	arch     string
	version  string
	revision string
	created  time.Time
}

// config returns how the image is started. What the container may write is in two volumes and /tmp.
func (r *release) config() v1.Config {
	return v1.Config{
		User: user,
		Env: []string{
			"PATH=/usr/bin", "HOME=/var/lib/edge-infer", "STATE_DIRECTORY=/var/lib/edge-infer", "CACHE_DIRECTORY=/var/cache/edge-infer",
		},
		WorkingDir: "/var/lib/edge-infer",
		Entrypoint: []string{"/usr/bin/edge-infer"},
		Cmd:        []string{"--config", "/etc/edge-infer/edge-infer.yaml"},
		Volumes:    map[string]struct{}{"/var/lib/edge-infer": {}, "/var/cache/edge-infer": {}},
		Labels: map[string]string{
			oci.AnnotationTitle:       "edge-infer",
			oci.AnnotationDescription: "Camera detection sensor: TensorRT or ONNX Runtime, results over MQTT",
			oci.AnnotationVersion:     r.version,
			oci.AnnotationRevision:    r.revision,
			oci.AnnotationCreated:     r.created.Format(time.RFC3339),
			oci.AnnotationSource:      "https://github.com/edge-infer/edge-infer",
			oci.AnnotationLicenses:    "Apache-2.0",
		},
	}
}

// image returns the image of layers, tar files of which the first is the lowest.
func (r *release) image(layers []string) (v1.Image, error) {
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	for _, path := range layers {
		layer, err := tarball.LayerFromFile(path, tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
		if err != nil {
			return nil, fmt.Errorf("layer %s: %w", path, err)
		}
		what := strings.TrimSuffix(filepath.Base(path), ".tar")
		history := v1.History{Created: v1.Time{Time: r.created}, CreatedBy: "edge-infer cross/image-archive: " + what}
		if image, err = mutate.Append(image, mutate.Addendum{Layer: layer, History: history, MediaType: types.OCILayer}); err != nil {
			return nil, fmt.Errorf("layer %s: %w", path, err)
		}
	}
	file, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS = "linux"
	file.Architecture = r.arch
	file.Created = v1.Time{Time: r.created}
	file.Config = r.config()
	return mutate.ConfigFile(image, file)
}

// write makes dir the layout of the image.
func (r *release) write(dir string, image v1.Image) error {
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	tag := repository + ":" + r.version
	// podman and skopeo read the first, containerd and Docker on it the second.
	annotations := map[string]string{oci.AnnotationRefName: tag, "io.containerd.image.name": tag}
	platform := v1.Platform{OS: "linux", Architecture: r.arch}
	if err := path.AppendImage(image, layout.WithAnnotations(annotations), layout.WithPlatform(platform)); err != nil {
		return err
	}
	manifest, err := image.Manifest()
	if err != nil {
		return err
	}
	saved := tarball.Descriptor{Config: blob(manifest.Config.Digest), RepoTags: []string{tag}}
	for _, layer := range manifest.Layers {
		saved.Layers = append(saved.Layers, blob(layer.Digest))
	}
	text, err := json.Marshal(tarball.Manifest{saved})
	if err != nil {
		return err
	}
	return path.WriteFile("manifest.json", text, 0o644)
}

// blob returns the path of a blob in a layout.
func blob(digest v1.Hash) string { return "blobs/" + digest.Algorithm + "/" + digest.Hex }

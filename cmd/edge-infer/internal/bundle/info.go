// Package bundle packs a model with what belongs to it, labels, preprocessing, calibration and engine plans, into an OCI artifact with the
// media types of CNCF ModelPack, signs it with minisign, and installs it from a registry, an HTTPS address or a file.
//
// Everything that a device acts on is in the manifest, whose bytes are signed. Files have the names of this package, never foreign ones.
package bundle

import (
	"fmt"
	"regexp"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/labelled"
)

// Media types of ModelPack for plain files, and of the signatures.
const (
	typeManifest   = "application/vnd.cncf.model.manifest.v1+json"
	typeConfig     = "application/vnd.cncf.model.config.v1+json"
	typeWeights    = "application/vnd.cncf.model.weight.v1.raw"
	typeSettings   = "application/vnd.cncf.model.weight.config.v1.raw"
	typeSignature  = "application/vnd.edge-infer.minisign.v1"
	pathAnnotation = "org.cncf.model.filepath"
)

// Annotations of a manifest and of a plan's layer; others are those of OCI.
const (
	expiresAnnotation    = "io.github.edge-infer.expires"
	confidenceAnnotation = "io.github.edge-infer.confidence"
	tensorrtAnnotation   = "io.github.edge-infer.tensorrt"
	gpuAnnotation        = "io.github.edge-infer.gpu"
)

// Info is what the manifest of a bundle states.
type Info struct {
	Name string `json:"name"`
	// Version is 1 or more and grows with every bundle of that name.
	Version int64 `json:"version"`
	// Expires is the time after which the bundle is not installed; zero for never.
	Expires time.Time `json:"expires,omitzero"`
	// Confidence is the threshold that its publisher recommends; 0 for none.
	Confidence  float64 `json:"confidence,omitempty"`
	Licence     string  `json:"licence,omitempty"` // SPDX identifier
	Description string  `json:"description,omitempty"`
	// Digest is sha256: and the hash of the manifest.
	Digest string `json:"digest"`
	Files  []File `json:"files"`

	config File // of ModelPack, for tools that show it; not read here
}

// File is a file of a bundle.
type File struct {
	Path   string `json:"path"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
	// TensorRT and GPU are the version and the device name that a plan is for; empty for other files.
	TensorRT string `json:"tensorrt,omitempty"`
	GPU      string `json:"gpu,omitempty"`
}

// The paths of a bundle's files. Plans are named as in the plan cache: by the model's hash and that of everything else that affects the
// build.
const (
	modelFile       = "model.onnx"
	labelsFile      = "labels.txt"
	preprocessFile  = "preprocess.yaml"
	calibrationFile = "calibration.cache"
	labelledFile    = "labelled.images"
)

var planFile = regexp.MustCompile(`^plans/([0-9a-f]{8}-[0-9a-f]{32}\.plan)$`)

// plan returns the name of a plan in the plan cache, "" for other files.
func (f *File) plan() string {
	if match := planFile.FindStringSubmatch(f.Path); match != nil {
		return match[1]
	}
	return ""
}

// mediaType returns the media type and the size limit in bytes of a file; ok is false for paths that no bundle has.
func (f *File) mediaType() (mediaType string, most int64, ok bool) {
	switch f.Path {
	case modelFile:
		return typeWeights, 1 << 62, true
	case labelsFile:
		return typeSettings, 8 << 20, true
	case preprocessFile:
		return typeSettings, 8 << 10, true
	case calibrationFile:
		return typeSettings, 64 << 20, true
	case labelledFile:
		return typeSettings, 2 * labelled.MaxBytes, true
	}
	return typeWeights, 1 << 62, f.plan() != ""
}

// file returns the file at a path, nil if the bundle has none.
func (i *Info) file(path string) *File {
	for at := range i.Files {
		if i.Files[at].Path == path {
			return &i.Files[at]
		}
	}
	return nil
}

// Bytes returns the size of all files.
func (i *Info) Bytes() (sum int64) {
	for at := range i.Files {
		sum += i.Files[at].Bytes
	}
	return sum
}

// checkExpiry returns an error if the bundle has expired.
func (i *Info) checkExpiry(now time.Time) error {
	if i.Expires.IsZero() || now.Before(i.Expires) {
		return nil
	}
	return fmt.Errorf("version %d of %s expired on %s (ask its publisher for a newer one; this machine's clock is %s)", i.Version, i.Name,
		i.Expires.UTC().Format(time.DateOnly), now.UTC().Format(time.RFC3339))
}

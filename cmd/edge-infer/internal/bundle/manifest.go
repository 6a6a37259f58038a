package bundle

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	oci "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/catalogue"
)

// Limits of what is read into memory, in bytes, and of counts.
const (
	maxManifest = 1 << 20
	maxFiles    = 64
	maxText     = 300     // characters of an annotation
	maxNumber   = 1 << 53 // that any program reads from JSON
)

// descriptor returns the descriptor of a content.
func descriptor(mediaType string, data []byte) oci.Descriptor {
	return oci.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(data), Size: int64(len(data))}
}

// descriptor returns the descriptor of a layer.
func (f *File) descriptor() oci.Descriptor {
	mediaType, _, _ := f.mediaType()
	return oci.Descriptor{MediaType: mediaType, Digest: digest.NewDigestFromEncoded(digest.SHA256, f.SHA256), Size: f.Bytes}
}

// encodeManifest returns the manifest, the same bytes for the same contents.
func (i *Info) encodeManifest(config oci.Descriptor) ([]byte, error) {
	annotations := map[string]string{oci.AnnotationTitle: i.Name, oci.AnnotationVersion: strconv.FormatInt(i.Version, 10)}
	set := func(key, value string) {
		if value != "" {
			annotations[key] = value
		}
	}
	set(oci.AnnotationLicenses, i.Licence)
	set(oci.AnnotationDescription, i.Description)
	if !i.Expires.IsZero() {
		set(expiresAnnotation, i.Expires.UTC().Format(time.RFC3339))
	}
	if i.Confidence != 0 {
		set(confidenceAnnotation, strconv.FormatFloat(i.Confidence, 'g', -1, 64))
	}
	m := oci.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: oci.MediaTypeImageManifest, ArtifactType: typeManifest, Config: config,
		Annotations: annotations,
	}
	for at := range i.Files {
		f := &i.Files[at]
		layer := f.descriptor()
		layer.Annotations = map[string]string{pathAnnotation: f.Path, oci.AnnotationTitle: f.Path} // the title is what oras pull reads
		if f.TensorRT != "" || f.GPU != "" {
			layer.Annotations[tensorrtAnnotation] = f.TensorRT
			layer.Annotations[gpuAnnotation] = f.GPU
		}
		m.Layers = append(m.Layers, layer)
	}
	return json.Marshal(m)
}

// modelConfig is ModelPack's config, for the tools that show it.
type modelConfig struct {
	Descriptor struct {
		Name        string   `json:"name"`
		Version     string   `json:"version"`
		Licenses    []string `json:"licenses,omitempty"`
		Description string   `json:"description,omitempty"`
	} `json:"descriptor"`
	Config struct {
		Format string `json:"format"`
	} `json:"config"`
	ModelFS struct {
		Type    string   `json:"type"`
		DiffIDs []string `json:"diffIds"`
	} `json:"modelfs"`
}

// encodeConfig returns ModelPack's config.
func (i *Info) encodeConfig() ([]byte, error) {
	var c modelConfig
	c.Descriptor.Name = i.Name
	c.Descriptor.Version = strconv.FormatInt(i.Version, 10)
	c.Descriptor.Description = i.Description
	if i.Licence != "" {
		c.Descriptor.Licenses = []string{i.Licence}
	}
	c.Config.Format = "onnx"
	c.ModelFS.Type = "layers"
	for at := range i.Files {
		c.ModelFS.DiffIDs = append(c.ModelFS.DiffIDs, i.Files[at].descriptor().Digest.String())
	}
	return json.Marshal(c)
}

// parseManifest reads the manifest of a bundle and checks all of it.
func parseManifest(data []byte) (*Info, error) {
	var m oci.Manifest
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, fmt.Errorf("its manifest is not JSON that can be read: %w", err)
	}
	if m.SchemaVersion != 2 || m.ArtifactType != typeManifest || m.Subject != nil {
		return nil, fmt.Errorf("it is an artifact of type %.100q, not a model bundle (make one with edge-infer bundle make)", artifactType(&m))
	}
	i := &Info{Digest: digest.FromBytes(data).String()}
	if err := i.parseAnnotations(m.Annotations); err != nil {
		return nil, fmt.Errorf("its manifest: %w (ask its publisher for one made with edge-infer bundle make)", err)
	}
	if err := checkDescriptor(&m.Config, maxManifest); err != nil {
		return nil, fmt.Errorf("its manifest: config: %w", err)
	}
	i.config = File{Bytes: m.Config.Size, SHA256: m.Config.Digest.Encoded()}
	if len(m.Layers) > maxFiles {
		return nil, fmt.Errorf("its manifest has %d files, at most %d are installed", len(m.Layers), maxFiles)
	}
	for at := range m.Layers {
		if err := i.addLayer(&m.Layers[at]); err != nil {
			return nil, fmt.Errorf("its manifest: %w (ask its publisher for one made with edge-infer bundle make)", err)
		}
	}
	if i.file(modelFile) == nil {
		return nil, fmt.Errorf("it has no %s (make it with edge-infer bundle make)", modelFile)
	}
	return i, nil
}

// artifactType returns the type of an artifact, which older clients put into the config.
func artifactType(m *oci.Manifest) string {
	if m.ArtifactType != "" {
		return m.ArtifactType
	}
	return m.Config.MediaType
}

// parseAnnotations reads the manifest's annotations.
func (i *Info) parseAnnotations(annotations map[string]string) (err error) {
	i.Name = annotations[oci.AnnotationTitle]
	i.Licence = annotations[oci.AnnotationLicenses]
	i.Description = annotations[oci.AnnotationDescription]
	for key, value := range annotations {
		if err := checkText(value); err != nil {
			return fmt.Errorf("annotation %.100q %w", key, err)
		}
	}
	if err := catalogue.CheckName(i.Name); err != nil {
		return err
	}
	version := annotations[oci.AnnotationVersion]
	i.Version, err = strconv.ParseInt(version, 10, 64)
	if err != nil || i.Version < 1 || i.Version > maxNumber || strconv.FormatInt(i.Version, 10) != version {
		return fmt.Errorf("version %q must be a whole number from 1", version)
	}
	if text, set := annotations[expiresAnnotation]; set {
		if i.Expires, err = time.Parse(time.RFC3339, text); err != nil || i.Expires.IsZero() {
			return fmt.Errorf("expiry %q is not a time such as 2027-06-30T00:00:00Z", text)
		}
	}
	if text, set := annotations[confidenceAnnotation]; set {
		i.Confidence, err = strconv.ParseFloat(text, 64)
		if err != nil || !validConfidence(i.Confidence) {
			return fmt.Errorf("confidence %q must be over 0 and at most 1", text)
		}
	}
	return nil
}

func validConfidence(confidence float64) bool { return confidence > 0 && confidence <= 1 }

// checkText rejects texts that are not one line for a person.
func checkText(text string) error {
	if len([]rune(text)) > maxText {
		return fmt.Errorf("has more than %d characters", maxText)
	}
	if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return errors.New("has characters that cannot be printed")
	}
	return nil
}

// addLayer adds a file of the manifest.
func (i *Info) addLayer(layer *oci.Descriptor) error {
	f := File{
		Path: layer.Annotations[pathAnnotation], TensorRT: layer.Annotations[tensorrtAnnotation], GPU: layer.Annotations[gpuAnnotation],
	}
	mediaType, most, known := f.mediaType()
	switch {
	case !known:
		return fmt.Errorf("file %.200q does not belong into a bundle", f.Path)
	case layer.MediaType != mediaType:
		return fmt.Errorf("%s has media type %.100q instead of %s: archives and compressed files are not unpacked", f.Path, layer.MediaType,
			mediaType)
	case i.file(f.Path) != nil:
		return fmt.Errorf("%s is there twice", f.Path)
	}
	if err := checkDescriptor(layer, most); err != nil {
		return fmt.Errorf("%s: %w", f.Path, err)
	}
	for key, value := range layer.Annotations {
		if err := checkText(value); err != nil {
			return fmt.Errorf("%s: annotation %.100q %w", f.Path, key, err)
		}
	}
	f.Bytes = layer.Size
	f.SHA256 = layer.Digest.Encoded()
	for at := range i.Files {
		if i.Files[at].SHA256 == f.SHA256 {
			return fmt.Errorf("%s and %s have the same contents", i.Files[at].Path, f.Path)
		}
	}
	if i.Bytes() > maxNumber-f.Bytes {
		return fmt.Errorf("%s has %d bytes", f.Path, f.Bytes)
	}
	i.Files = append(i.Files, f)
	return nil
}

// checkDescriptor checks the digest and the size of a content that has at most that many bytes.
func checkDescriptor(d *oci.Descriptor, most int64) error {
	if err := d.Digest.Validate(); err != nil || d.Digest.Algorithm() != digest.SHA256 {
		return fmt.Errorf("digest %.100q is not sha256: and 64 hexadecimal digits", d.Digest)
	}
	if d.Size < 1 || d.Size > most {
		return fmt.Errorf("size %d is not 1 to %d bytes", d.Size, most)
	}
	return nil
}

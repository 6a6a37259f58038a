package bundle

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/opencontainers/image-spec/specs-go"
	oci "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/catalogue"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/labelled"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/progress"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/onnx"
	"github.com/edge-infer/edge-infer/engine/quantize"
	"github.com/edge-infer/edge-infer/engine/tensorrt"
	"github.com/edge-infer/edge-infer/internal/atomicfile"
)

// Make writes a bundle to a file. The same contents give the same manifest.
type Make struct {
	// Model is an ONNX file or the name of a downloaded model.
	Model string
	// Labels is a file of class names or the name of a known list; empty for those of a downloaded model, if it has any.
	Labels string
	// Preprocess is a preset or YAML; empty for the file beside the model, if there is one.
	Preprocess string
	// Calibration is a calibration cache, empty for none; Plans are files of the plan cache, built from the model.
	Calibration string
	Plans       []string
	// Data is a dataset of labelled images by which devices measure the model; empty for none.
	Data string
	// Name is the bundle's name; by default that of the model's file. Version is 1 or more.
	Name    string
	Version int64
	// Expires is a date or an RFC 3339 time; empty for never.
	Expires     string
	Confidence  float64 // 0 for none
	Licence     string
	Description string
	// Sign are files of minisign's secret keys. Password is called for those that have one.
	Sign     []string
	Password func(prompt string) (string, error)
	// Output is the file to write: a tar archive, or an image of SWUpdate with it in it if the name ends in .swu.
	Output string
	// Progress receives the number of KiB written.
	Progress progress.Reporter

	info  Info
	blobs []blob
}

// blob is a content of the archive.
type blob struct {
	oci.Descriptor
	data []byte
}

// Run writes the bundle.
func (m *Make) Run(_ context.Context) (*Summary, error) {
	summary, err := m.run()
	if err != nil {
		return nil, fmt.Errorf("bundle make: %w", err)
	}
	return summary, nil
}

func (m *Make) run() (*Summary, error) {
	if err := atomicfile.Check(m.Output); err != nil {
		return nil, err
	}
	if err := m.describe(); err != nil {
		return nil, err
	}
	if err := m.addFiles(); err != nil {
		return nil, err
	}
	config, err := m.info.encodeConfig()
	if err != nil {
		return nil, err
	}
	manifest, err := m.info.encodeManifest(descriptor(typeConfig, config))
	if err != nil {
		return nil, err
	}
	info, err := parseManifest(manifest) // as every device will
	if err != nil {
		return nil, err
	}
	signatures := make([]signature, len(m.Sign))
	var texts [][]byte
	for at, path := range m.Sign {
		key, err := readPrivateKey(path, m.Password)
		if err != nil {
			return nil, err
		}
		if signatures[at], err = sign(key, info, manifest); err != nil {
			return nil, err
		}
		texts = append(texts, signatures[at].text)
	}
	if err := m.write(config, manifest, signatures); err != nil {
		return nil, err
	}
	summary := &Summary{Version: 1, Source: m.Output, Bundle: *info, SignedBy: signers(texts)}
	if len(texts) > 0 {
		summary.VerifiedBy = summary.SignedBy[0]
	}
	return summary, nil
}

// describe sets what the manifest states besides files.
func (m *Make) describe() error {
	name := m.Name
	if name == "" {
		name = strings.TrimSuffix(filepath.Base(m.Model), filepath.Ext(m.Model))
	}
	if err := catalogue.CheckName(name); err != nil {
		return fmt.Errorf("%w (set --name)", err)
	}
	if m.Version < 1 || m.Version > maxNumber {
		return errors.New("--version must be a whole number from 1, higher than that of the last bundle of this name")
	}
	if m.Confidence != 0 && !validConfidence(m.Confidence) {
		return errors.New("--confidence must be over 0 and at most 1")
	}
	m.info = Info{Name: name, Version: m.Version, Confidence: m.Confidence, Licence: m.Licence, Description: m.Description}
	if m.Expires == "" {
		return nil
	}
	for _, form := range []string{time.DateOnly, time.RFC3339} {
		if expires, err := time.Parse(form, m.Expires); err == nil {
			m.info.Expires = expires
			return nil
		}
	}
	return fmt.Errorf("--expires %q must be a date or a time, such as 2027-06-30 or 2027-06-30T12:00:00Z", m.Expires)
}

// addFiles reads and checks all files.
func (m *Make) addFiles() error {
	path, labels, err := catalogue.Resolve(m.Model)
	if err != nil {
		return err
	}
	model, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("model: %w (name an ONNX file or a downloaded model, see edge-infer model list)", err)
	}
	if tensorrt.IsPlan(model) {
		return fmt.Errorf("model %s is an engine plan (name its ONNX file, and the plan with --plan)", path)
	}
	if model, err = embedded(path, model); err != nil {
		return err
	}
	if err := m.add(path, File{Path: modelFile}, model); err != nil {
		return err
	}
	if m.Labels != "" {
		labels = m.Labels
	}
	if err := m.addLabels(labels); err != nil {
		return err
	}
	if err := m.addPreprocess(path); err != nil {
		return err
	}
	if m.Calibration != "" {
		data, err := os.ReadFile(m.Calibration)
		if err != nil {
			return fmt.Errorf("calibration cache: %w", err)
		}
		if err := m.add(m.Calibration, File{Path: calibrationFile}, data); err != nil {
			return err
		}
	}
	if m.Data != "" {
		set, err := labelled.Read(m.Data)
		if err != nil {
			return err
		}
		data, err := set.Marshal()
		if err != nil {
			return err
		}
		if err := m.add(m.Data, File{Path: labelledFile}, data); err != nil {
			return err
		}
	}
	for _, plan := range m.Plans {
		if err := m.addPlan(plan, model); err != nil {
			return err
		}
	}
	return nil
}

// embedded returns a model with the tensors that are in data files beside it; the same bytes if there are none.
func embedded(path string, data []byte) ([]byte, error) {
	model, err := onnx.Parse(path, data)
	if err != nil || len(model.ExternalFiles()) == 0 {
		return data, err
	}
	if err := model.Embed(filepath.Dir(path)); err != nil {
		return nil, err
	}
	return model.Bytes()
}

// add adds a file after a check of its contents.
func (m *Make) add(from string, f File, data []byte) error {
	if err := checkContent(f.Path, data); err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	sum := sha256.Sum256(data)
	f.Bytes = int64(len(data))
	f.SHA256 = hex.EncodeToString(sum[:])
	m.info.Files = append(m.info.Files, f)
	m.blobs = append(m.blobs, blob{f.descriptor(), data})
	return nil
}

// addLabels adds a file of class names or a known list; nothing if the name is empty.
func (m *Make) addLabels(name string) error {
	if name == "" {
		return nil
	}
	data, err := os.ReadFile(name)
	if known := engine.KnownLabels(name); errors.Is(err, os.ErrNotExist) && known != nil {
		data, err = []byte(strings.Join(known, "\n")+"\n"), nil
	}
	if err != nil {
		return fmt.Errorf("labels: %w", err)
	}
	return m.add(name, File{Path: labelsFile}, data)
}

// addPreprocess adds the preprocessing that was set or is beside the model.
func (m *Make) addPreprocess(model string) error {
	p, err := engine.ParsePreprocess([]byte(m.Preprocess))
	if err != nil {
		return err
	}
	beside, err := engine.ReadPreprocess(model)
	if err != nil {
		return err
	}
	p = beside.Override(p)
	if p.IsZero() {
		return nil
	}
	data, err := yaml.Marshal(p)
	if err != nil {
		return err
	}
	return m.add("preprocess", File{Path: preprocessFile}, data)
}

// addPlan adds a file of the plan cache.
func (m *Make) addPlan(path string, model []byte) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("plan: %w", err)
	}
	facts, _, err := tensorrt.ReadPlan(data)
	if err != nil {
		return fmt.Errorf("plan %s: %w", path, err)
	}
	sum := sha256.Sum256(model)
	f := File{Path: "plans/" + filepath.Base(path), TensorRT: facts.Version, GPU: facts.GPU}
	if !strings.HasPrefix(f.plan(), hex.EncodeToString(sum[:4])+"-") || f.TensorRT == "" || f.GPU == "" {
		return fmt.Errorf("plan %s is not one of the plan cache for this model (run edge-infer build without -o: it prints the file)", path)
	}
	return m.add(path, f, data)
}

// checkCalibration returns an error unless data is a calibration cache of this program or of TensorRT.
func checkCalibration(data []byte) error {
	if bytes.HasPrefix(data, []byte("TRT-")) {
		return nil
	}
	_, err := quantize.ParseCache(data)
	return err
}

// write writes the archive: what describes the bundle first, the model last.
func (m *Make) write(config, manifest []byte, signatures []signature) error {
	bundle := descriptor(oci.MediaTypeImageManifest, manifest)
	index := oci.Index{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: oci.MediaTypeImageIndex, Manifests: []oci.Descriptor{bundle},
	}
	index.Manifests[0].ArtifactType = typeManifest
	index.Manifests[0].Annotations = map[string]string{oci.AnnotationRefName: fmt.Sprint(m.Version)}
	first := []blob{{bundle, manifest}, {descriptor(typeConfig, config), config}}
	for at := range signatures {
		s := &signatures[at]
		d := descriptor(oci.MediaTypeImageManifest, s.manifest)
		first = append(first, blob{d, s.manifest}, blob{descriptor(typeSignature, s.text), s.text})
		d.ArtifactType = typeSignature
		index.Manifests = append(index.Manifests, d)
	}
	if len(signatures) > 0 {
		first = append(first, blob{descriptor(typeSignature, emptyConfig), emptyConfig})
	}
	text, err := json.Marshal(index)
	if err != nil {
		return err
	}
	file, err := atomicfile.Create(m.Output, 0o644)
	if err != nil {
		return err
	}
	err = m.writeArchive(file, text, append(first, m.blobs...))
	if err == nil {
		err = file.Commit()
	}
	return errors.Join(err, file.Close())
}

// writeArchive writes the archive, in an image of SWUpdate if the output is to be one.
func (m *Make) writeArchive(file io.Writer, index []byte, blobs []blob) error {
	layout, err := json.Marshal(oci.ImageLayout{Version: oci.ImageLayoutVersion})
	if err != nil {
		return err
	}
	if filepath.Ext(m.Output) != swuExtension {
		return m.writeEntries(file, layout, index, blobs)
	}
	const block = 512 // of tar: a header, whole blocks of data, and two blocks at the end
	size := int64(2 * block)
	for _, data := range append([]blob{{data: layout}, {data: index}}, blobs...) {
		size += block + (int64(len(data.data))+block-1)/block*block
	}
	image := &swuWriter{to: file}
	if err := image.begin(&m.info, size); err != nil {
		return err
	}
	if err := m.writeEntries(image, layout, index, blobs); err != nil {
		return err
	}
	return image.end()
}

func (m *Make) writeEntries(to io.Writer, layout, index []byte, blobs []blob) error {
	archive := tar.NewWriter(to)
	total := int64(0)
	for at := range blobs {
		total += blobs[at].Size
	}
	step := m.Progress.Begin("KiB")
	defer step.Close()
	written := int64(0)
	write := func(name string, data []byte) error {
		header := tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(data)), Mode: 0o644, ModTime: time.Unix(0, 0)}
		if err := archive.WriteHeader(&header); err != nil {
			return err
		}
		_, err := io.Copy(archive, bytes.NewReader(data))
		written += int64(len(data))
		step.Count(int(written>>10), int(total>>10))
		return err
	}
	if err := errors.Join(write(oci.ImageLayoutFile, layout), write(oci.ImageIndexFile, index)); err != nil {
		return err
	}
	for at := range blobs {
		if err := write(blobName(blobs[at].Digest), blobs[at].data); err != nil {
			return err
		}
	}
	return archive.Close()
}

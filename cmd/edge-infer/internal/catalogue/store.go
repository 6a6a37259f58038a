package catalogue

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/internal/atomicfile"
)

// Store is a directory of downloaded models: NAME.onnx with its hash in NAME.sha256, labels in NAME.labels.txt and preprocessing in
// NAME.preprocess.yaml. Those of a bundle are in a directory of their own, see Bundle.
type Store struct{ Dir string }

// Open returns the store: models below $CACHE_DIRECTORY in a systemd unit, otherwise below $XDG_CACHE_HOME/edge-infer or
// ~/.cache/edge-infer.
func Open() (Store, error) {
	dir := os.Getenv("CACHE_DIRECTORY")
	if dir == "" {
		caches, err := os.UserCacheDir()
		if err != nil {
			return Store{}, fmt.Errorf("model store: %w", err)
		}
		dir = filepath.Join(caches, "edge-infer")
	}
	return Store{filepath.Join(dir, "models")}, nil
}

// Path returns the file of a model in the store.
func (s Store) Path(name string) string { return filepath.Join(s.of(name).Dir, name+".onnx") }

// LabelsPath returns the file of a model's labels.
func (s Store) LabelsPath(name string) string {
	return filepath.Join(s.of(name).Dir, name+".labels.txt")
}

// hashPath returns the file with a model's SHA-256.
func (s Store) hashPath(name string) string { return filepath.Join(s.of(name).Dir, name+".sha256") }

// Verify returns an error if the file of a model is not the one that was downloaded. Models of earlier versions have no hash.
func (s Store) Verify(name string) error {
	want, err := os.ReadFile(s.hashPath(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("model %s: %w", name, err)
	}
	have, err := fileHash(s.Path(name))
	if err != nil {
		return fmt.Errorf("model %s: %w", name, err)
	}
	if have != strings.TrimSpace(string(want)) {
		remedy := "model pull " + name
		if s.Bundle(name) != "" {
			remedy = "bundle pull again"
		}
		return fmt.Errorf("model %s: %s is damaged or was changed: its sha256 is %s, not %s (run edge-infer %s)",
			name, s.Path(name), have, strings.TrimSpace(string(want)), remedy)
	}
	return nil
}

// Has reports whether a model was downloaded.
func (s Store) Has(name string) bool {
	_, err := os.Stat(s.Path(name))
	return err == nil
}

// holds reports whether a model was downloaded and is unchanged.
func (s Store) holds(e *Entry) bool {
	have, err := fileHash(s.Path(e.Name))
	return err == nil && have == e.SHA256
}

// Resolve returns the file of a model that a user names, and its labels file if it has one: an existing file, or a downloaded model. Other
// names are returned unchanged, except for those of the catalogue, whose error explains how to download the model.
func Resolve(model string) (path, labels string, err error) {
	if model == "" || strings.ContainsRune(model, filepath.Separator) {
		return model, "", nil
	}
	if _, err := os.Stat(model); err == nil {
		return model, "", nil
	}
	s, err := Open()
	if err != nil {
		return model, "", nil //nolint:nilerr // a machine without a home has no store
	}
	if s.Has(model) {
		if err := s.Verify(model); err != nil {
			return "", "", err
		}
		s = s.of(model) // the same version for both files
		if _, err := os.Stat(s.LabelsPath(model)); err == nil {
			labels = s.LabelsPath(model)
		}
		return s.Path(model), labels, nil
	}
	if _, err := Lookup(model); err == nil {
		return "", "", fmt.Errorf("model %s is not downloaded (run edge-infer model pull %s)", model, model)
	}
	return model, "", nil
}

// Names lists the downloaded models.
func (s Store) Names() ([]string, error) {
	var found []string
	for _, suffix := range []string{".onnx", bundleSuffix} {
		paths, err := filepath.Glob(filepath.Join(s.Dir, "*"+suffix))
		if err != nil {
			return nil, err
		}
		for _, path := range paths {
			found = append(found, strings.TrimSuffix(filepath.Base(path), suffix))
		}
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}

// Remove removes a model with its labels and preprocessing.
func (s Store) Remove(name string) error {
	if err := CheckName(name); err != nil {
		return err
	}
	if !s.Has(name) {
		return fmt.Errorf("model %s is not downloaded (see edge-infer model list)", name)
	}
	if err := s.removeBundle(name); err != nil {
		return fmt.Errorf("model %s: %w", name, err)
	}
	if err := s.removeFiles(name); err != nil {
		return fmt.Errorf("model %s: %w", name, err)
	}
	return nil
}

// removeFiles removes the files of a model that did not come from a bundle.
func (s Store) removeFiles(name string) error {
	for _, suffix := range []string{".onnx", ".sha256", ".labels.txt", ".preprocess.yaml"} {
		if err := os.Remove(filepath.Join(s.Dir, name+suffix)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// install moves a verified file to its place and writes the catalogue's labels and preprocessing next to it.
func (s Store) install(e *Entry, file string) error {
	if text := labels(e.Labels); text != "" {
		if err := atomicfile.Write(s.LabelsPath(e.Name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	if !e.Preprocess.IsZero() {
		text, err := yaml.Marshal(e.Preprocess)
		if err == nil {
			err = atomicfile.Write(engine.PreprocessFile(s.Path(e.Name)), text, 0o644)
		}
		if err != nil {
			return err
		}
	}
	if err := os.Remove(s.hashPath(e.Name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err // a hash of the file before would refuse the new one
	}
	if err := atomicfile.Move(file, s.Path(e.Name)); err != nil {
		return err
	}
	return s.WriteHash(e.Name, e.SHA256)
}

// WriteHash writes the SHA-256 of a model, against which it is checked whenever it is opened.
func (s Store) WriteHash(name, hash string) error {
	return atomicfile.Write(s.hashPath(name), []byte(hash+"\n"), 0o644)
}

// nameForm is the form of the names of models, which become names of files and of MQTT entities.
var nameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

// CheckName rejects names of another form.
func CheckName(name string) error {
	if !nameForm.MatchString(name) {
		return fmt.Errorf("model name %.120q: it must consist of 1 to 100 letters, digits, dots, dashes and underscores", name)
	}
	return nil
}

// fileHash returns the SHA-256 of a file in hexadecimal digits.
func fileHash(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

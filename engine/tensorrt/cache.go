package tensorrt

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"syscall"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/cuda"
	"github.com/edge-infer/edge-infer/internal/atomicfile"
)

// CacheDir returns the default directory of plans: $CACHE_DIRECTORY in a systemd unit, otherwise $XDG_CACHE_HOME/edge-infer or
// ~/.cache/edge-infer.
func CacheDir() (string, error) {
	if dir := os.Getenv("CACHE_DIRECTORY"); dir != "" {
		return dir, nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("cache directory: %w", err)
	}
	return filepath.Join(dir, "edge-infer"), nil
}

// Cache is a directory of plans, one file per combination of model, device, TensorRT version and build options; the zero value is CacheDir.
// Several processes may use it, because files are replaced atomically.
type Cache struct {
	Dir string
}

// dir returns the directory of the files.
func (c Cache) dir() (string, error) {
	if c.Dir != "" {
		return c.Dir, nil
	}
	return CacheDir()
}

// file returns the plan's path. It starts with the first bytes of the model's hash, so that users can see which plans belong together.
func (c Cache) file(k Key) (string, error) {
	dir, err := c.dir()
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(k)
	if err != nil {
		return "", fmt.Errorf("cache key: %w", err)
	}
	sum := sha256.Sum256(text)
	return filepath.Join(dir, hex.EncodeToString(k.Model[:4])+"-"+hex.EncodeToString(sum[:16])+".plan"), nil
}

// Load returns the plan file with that key; ok is false if there is none. The error of an unusable file is the reason; the plan should be
// built again, except for errUntrusted, a file that another user can have written.
func (c Cache) Load(k Key) (file []byte, ok bool, err error) {
	path, err := c.file(k)
	if err != nil {
		return nil, false, err
	}
	file, err = readTrusted(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if errors.Is(err, errUntrusted) {
		return nil, false, err
	}
	if err != nil {
		return nil, false, fmt.Errorf("plan cache: %w", err)
	}
	if _, _, err := ReadPlan(file); err != nil {
		return nil, false, fmt.Errorf("plan cache: %s: %w", path, err)
	}
	return file, true, nil
}

// Store writes a plan file under the key and returns its path.
func (c Cache) Store(k Key, file []byte) (string, error) {
	path, err := c.file(k)
	if err != nil {
		return "", err
	}
	return path, replaceFile(path, file)
}

// planName is the form of the names of the cache's files.
var planName = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{32}\.plan$`)

// Import writes a plan file that another machine's cache had under that name, and returns its path. The caller trusts its origin, because
// TensorRT executes code in plans.
func (c Cache) Import(name string, file []byte) (string, error) {
	if !planName.MatchString(name) {
		return "", fmt.Errorf("plan cache: %.100q is not the name of a plan of the cache", name)
	}
	dir, err := c.dir()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, name)
	return path, replaceFile(path, file)
}

// TimingFile returns the file of kernel timings shared by builds of one TensorRT version on one GPU architecture.
func (c Cache) TimingFile(version Version, facts cuda.Facts) (string, error) {
	dir, err := c.dir()
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", writeFailure(dir, 0, err)
	}
	return filepath.Join(dir, fmt.Sprintf("timing-%s-%s.cache", version, facts.ComputeCapability())), nil
}

// Remove removes a plan that TensorRT rejected.
func (c Cache) Remove(k Key) error {
	path, err := c.file(k)
	if err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("plan cache: %w", err)
	}
	return nil
}

// checkDir creates a directory and checks that files can be created in it.
func checkDir(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return writeFailure(dir, 0, err)
	}
	part, err := os.CreateTemp(dir, ".part-*")
	if err != nil {
		return writeFailure(dir, 0, err)
	}
	return errors.Join(part.Close(), os.Remove(part.Name()))
}

// replaceFile writes a file atomically.
func replaceFile(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return writeFailure(path, len(data), err)
	}
	if err := atomicfile.Write(path, data, 0o644); err != nil {
		return writeFailure(path, len(data), err)
	}
	return nil
}

// writeFailure returns the error of a failed write, with a hint if the user can fix it.
func writeFailure(path string, size int, err error) error {
	e := &engine.Error{Op: "write", Backend: Name, Message: path, Err: err}
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		e.Hint = fmt.Sprintf("free %d MiB on that disk, or set XDG_CACHE_HOME to another one", size>>20+1)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		e.Hint = "make the directory writable for this user, or set XDG_CACHE_HOME to one that is"
	}
	return e
}

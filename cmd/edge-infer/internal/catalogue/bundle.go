package catalogue

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/edge-infer/edge-infer/internal/atomicfile"
)

// bundles is the directory of the store with a directory for each model that comes from a bundle, which has one for each version.
// bundleSuffix is that of the links to the versions in force.
const (
	bundles      = ".bundles"
	bundleSuffix = ".bundle"
)

// Bundle returns the directory with the files of a model that was installed from a bundle, in the names of a Store; "" for other models.
// The files of a directory do not change.
func (s Store) Bundle(name string) string {
	dir, err := filepath.EvalSymlinks(filepath.Join(s.Dir, name+bundleSuffix))
	if err != nil {
		return ""
	}
	return dir
}

// of returns the store that holds the files of a model: the directory of its bundle if it was installed from one.
func (s Store) of(name string) Store {
	if dir := s.Bundle(name); dir != "" {
		return Store{dir}
	}
	return s
}

// NewBundle creates a directory for the files of a bundle. Until lock is closed no other process installs a bundle of that name; it waits
// for one that does, until ctx ends. The caller puts the directory in force with InstallBundle, or removes it with DiscardBundle.
func (s Store) NewBundle(ctx context.Context, name string) (dir string, lock io.Closer, err error) {
	if err := CheckName(name); err != nil {
		return "", nil, err
	}
	parent := filepath.Join(s.Dir, bundles, name)
	if err := atomicfile.MkdirAll(parent, 0o755); err != nil {
		return "", nil, fmt.Errorf("model store: %w (set XDG_CACHE_HOME to a directory that can be written)", err)
	}
	file, err := openPart(ctx, filepath.Join(parent, ".lock"))
	if err != nil {
		return "", nil, err
	}
	dir, err = os.MkdirTemp(parent, "version-")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		return "", nil, errors.Join(err, file.Close())
	}
	return dir, file, nil
}

// InstallBundle puts a directory of NewBundle in force, whose files have been synced, in one step that a power cut leaves undone or done.
// A model of that name that was not installed from a bundle is removed. Of the bundle, this version and the one before are kept: a running
// process may still open the files of the latter.
func (s Store) InstallBundle(name, dir string) error {
	if err := atomicfile.SyncDir(dir); err != nil {
		return err
	}
	before := s.Bundle(name)
	link, err := filepath.Rel(s.Dir, dir)
	if err != nil {
		return err
	}
	part := filepath.Join(s.Dir, "."+name+bundleSuffix)
	if err := os.Remove(part); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Symlink(link, part); err != nil {
		return err
	}
	if err := errors.Join(atomicfile.SyncDir(filepath.Dir(dir)), atomicfile.Move(part, filepath.Join(s.Dir, name+bundleSuffix))); err != nil {
		return err
	}
	versions, _ := filepath.Glob(filepath.Join(filepath.Dir(dir), "version-*"))
	for _, version := range versions {
		if filepath.Base(version) != filepath.Base(dir) && filepath.Base(version) != filepath.Base(before) {
			_ = os.RemoveAll(version) // what stays goes with the next version
		}
	}
	_ = s.removeFiles(name) // what stays is not used
	return nil
}

// DiscardBundle removes a directory of NewBundle, unless it is in force.
func (s Store) DiscardBundle(name, dir string) error {
	if filepath.Base(s.Bundle(name)) == filepath.Base(dir) {
		return nil
	}
	return os.RemoveAll(dir)
}

// removeBundle removes a model that was installed from a bundle, with all its versions.
func (s Store) removeBundle(name string) error {
	err := os.Remove(filepath.Join(s.Dir, name+bundleSuffix))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.RemoveAll(filepath.Join(s.Dir, bundles, name))
}

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
// bundleSuffix is that of the links to the versions in force, candidateSuffix that of the links to versions that are on trial.
const (
	bundles         = ".bundles"
	bundleSuffix    = ".bundle"
	candidateSuffix = ".candidate"
)

// Bundle returns the directory with the files of a model that was installed from a bundle, in the names of a Store; "" for other models.
// The files of a directory do not change.
func (s Store) Bundle(name string) string { return s.linked(name + bundleSuffix) }

// Candidate returns the directory that StageBundle has kept for a model, "" if there is none.
func (s Store) Candidate(name string) string { return s.linked(name + candidateSuffix) }

// linked returns the directory that a link of the store names, "" if there is none.
func (s Store) linked(link string) string {
	dir, err := filepath.EvalSymlinks(filepath.Join(s.Dir, link))
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
	lock, err = s.lockBundle(ctx, name)
	if err != nil {
		return "", nil, err
	}
	dir, err = os.MkdirTemp(s.versions(name), "version-")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		return "", nil, errors.Join(err, lock.Close())
	}
	return dir, lock, nil
}

// versions is the directory with the versions of a model that comes from a bundle.
func (s Store) versions(name string) string { return filepath.Join(s.Dir, bundles, name) }

// lockBundle keeps other processes from changing the versions of a model until it is closed. It waits for one that does, until ctx ends.
func (s Store) lockBundle(ctx context.Context, name string) (io.Closer, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	if err := atomicfile.MkdirAll(s.versions(name), 0o755); err != nil {
		return nil, fmt.Errorf("model store: %w (set XDG_CACHE_HOME to a directory that can be written)", err)
	}
	return openPart(ctx, filepath.Join(s.versions(name), ".lock"))
}

// InstallBundle puts a directory of NewBundle in force, whose files have been synced, in one step that a power cut leaves undone or done.
// A model of that name that was not installed from a bundle is removed. Of the bundle, this version, the one before and a candidate are
// kept: a running process may still open their files.
func (s Store) InstallBundle(name, dir string) error {
	before := s.Bundle(name)
	if err := s.link(name+bundleSuffix, dir); err != nil {
		return err
	}
	versions, _ := filepath.Glob(filepath.Join(s.versions(name), "version-*"))
	for _, version := range versions {
		if !sameDir(version, dir) && !sameDir(version, before) && !sameDir(version, s.Candidate(name)) {
			_ = os.RemoveAll(version) // what stays goes with the next version
		}
	}
	_ = s.removeFiles(name) // what stays is not used
	return nil
}

// StageBundle keeps a directory of NewBundle, whose files have been synced, as the candidate for a model, whose version in force stays. The
// candidate before it is removed.
func (s Store) StageBundle(name, dir string) error {
	before := s.Candidate(name)
	if err := s.link(name+candidateSuffix, dir); err != nil || before == "" {
		return err
	}
	return s.DiscardBundle(name, before)
}

// InstallCandidate puts the candidate for a model in force, as InstallBundle does. It waits for another process that installs one.
func (s Store) InstallCandidate(ctx context.Context, name string) error {
	lock, err := s.lockBundle(ctx, name)
	if err != nil {
		return err
	}
	defer lock.Close()
	dir := s.Candidate(name)
	if dir == "" {
		return fmt.Errorf("model %s: its candidate is gone", name)
	}
	if err := s.InstallBundle(name, dir); err != nil {
		return err
	}
	return s.unlinkCandidate(name)
}

// RemoveCandidate removes the candidate for a model, if there is one. It waits for another process that installs one.
func (s Store) RemoveCandidate(ctx context.Context, name string) error {
	dir := s.Candidate(name)
	if dir == "" {
		return nil
	}
	lock, err := s.lockBundle(ctx, name)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := s.unlinkCandidate(name); err != nil {
		return err
	}
	return s.DiscardBundle(name, dir)
}

func (s Store) unlinkCandidate(name string) error {
	err := os.Remove(filepath.Join(s.Dir, name+candidateSuffix))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// link makes a link of the store name a directory of versions, in one step.
func (s Store) link(name, dir string) error {
	if err := atomicfile.SyncDir(dir); err != nil {
		return err
	}
	target, err := filepath.Rel(s.Dir, dir)
	if err != nil {
		return err
	}
	part := filepath.Join(s.Dir, "."+name)
	if err := os.Remove(part); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Symlink(target, part); err != nil {
		return err
	}
	return errors.Join(atomicfile.SyncDir(filepath.Dir(dir)), atomicfile.Move(part, filepath.Join(s.Dir, name)))
}

// sameDir reports whether two directories of versions of one model are the same.
func sameDir(one, other string) bool { return filepath.Base(one) == filepath.Base(other) }

// DiscardBundle removes a directory of NewBundle, unless it is in force or the candidate.
func (s Store) DiscardBundle(name, dir string) error {
	if sameDir(s.Bundle(name), dir) || sameDir(s.Candidate(name), dir) {
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
	if err := s.unlinkCandidate(name); err != nil {
		return err
	}
	return os.RemoveAll(s.versions(name))
}

package sink

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/edge-infer/edge-infer/internal/atomicfile"
)

// ledgerName is the file that lists the images of the ring, in the same directory.
const ledgerName = ".edge-infer-snapshots"

// ring keeps the newest images in a directory that may hold other files. It removes and replaces only files of its ledger, which it wrote
// in this run or an earlier one: one name per line, oldest first, written before the image. One goroutine uses it.
type ring struct {
	dir    string
	keep   int
	names  []string
	ledger *os.File
}

// openRing makes the directory where there is none, and continues the ring that is in it.
func openRing(dir string, keep int) (*ring, error) {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, fmt.Errorf("snapshots: %w", err)
	}
	r := &ring{dir: dir, keep: keep}
	path := filepath.Join(dir, ledgerName)
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("snapshots: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		name, whole := strings.CutSuffix(line, "\n")
		if whole && imageName(name) && !slices.Contains(r.names, name) {
			r.names = append(r.names, name)
		}
	}
	if err := r.prune(); err != nil {
		return nil, fmt.Errorf("snapshots: %w", err)
	}
	list := strings.Join(append(slices.Clone(r.names), ""), "\n")
	if err := atomicfile.Write(path, []byte(list), 0o640); err != nil {
		return nil, fmt.Errorf("snapshots: %w (snapshots.directory names a directory that the service's user may write to)", err)
	}
	if r.ledger, err = os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0); err != nil {
		return nil, fmt.Errorf("snapshots: %w", err)
	}
	return r, nil
}

// imageName reports whether a name can be one that the ring has given: of an image in the directory itself.
func imageName(name string) bool {
	return filepath.IsLocal(name) && filepath.Base(name) == name && strings.HasSuffix(name, ".jpg")
}

// store adds an image and takes the oldest ones out. One of the same name replaces the one before, if that was the ring's.
func (r *ring) store(name string, jpeg []byte) error {
	path := filepath.Join(r.dir, name)
	known := slices.Contains(r.names, name)
	if !known {
		if _, err := os.Lstat(path); err == nil {
			return fmt.Errorf("%s is there already and no snapshot of this daemon: left as it is", path)
		}
		if _, err := r.ledger.WriteString(name + "\n"); err != nil {
			return err
		}
		if err := r.ledger.Sync(); err != nil {
			return err
		}
		r.names = append(r.names, name)
	}
	if err := atomicfile.Write(path, jpeg, 0o640); err != nil {
		return err
	}
	return r.prune()
}

// prune removes the oldest images above the limit.
func (r *ring) prune() error {
	for len(r.names) > r.keep {
		if err := os.Remove(filepath.Join(r.dir, r.names[0])); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		r.names = r.names[1:]
	}
	return nil
}

// find returns the first image whose name has the prefix; fs.ErrNotExist if there is none. Any goroutine may call it.
func (r *ring) find(prefix string) ([]byte, error) {
	entries, err := os.ReadDir(r.dir)
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), prefix) && imageName(entry.Name()) {
			return os.ReadFile(filepath.Join(r.dir, entry.Name()))
		}
	}
	return nil, fs.ErrNotExist
}

func (r *ring) Close() error { return r.ledger.Close() }

package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/goccy/go-yaml"

	"github.com/edge-infer/edge-infer/internal/atomicfile"
	"github.com/edge-infer/edge-infer/internal/boundedfile"
)

// pageFile is a YAML file in the state directory with what was set on the page.
type pageFile struct {
	path    string // empty for nowhere
	what    string // is in it, for errors
	comment string // the first line
	mode    fs.FileMode
}

// pageFile returns the file with a name; with an empty path if there is no state directory.
func (c *Config) pageFile(name, what, comment string, mode fs.FileMode) pageFile {
	f := pageFile{what: what, comment: comment, mode: mode}
	if c.State != "" {
		f.path = filepath.Join(c.State, name)
	}
	return f
}

// read decodes the file into a value, which a missing file or an empty path leaves as it is.
func (f *pageFile) read(to any) error {
	if f.path == "" {
		return nil
	}
	data, err := boundedfile.Read(f.path, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return yaml.UnmarshalWithOptions(data, to, yaml.Strict())
}

// save writes a value.
func (f *pageFile) save(value any) error {
	text, err := yaml.MarshalWithOptions(value, yaml.IndentSequence(true))
	if err != nil {
		return fmt.Errorf("%s: %w", f.what, err)
	}
	if err := f.makeDirectory(); err != nil {
		return err
	}
	if err := atomicfile.Write(f.path, append([]byte(f.comment), text...), f.mode); err != nil {
		return fmt.Errorf("%s: %w", f.what, err)
	}
	return nil
}

// writable returns why save could not write, or nil. It tries.
func (f *pageFile) writable() error {
	if err := f.makeDirectory(); err != nil {
		return err
	}
	return atomicfile.Check(f.path)
}

func (f *pageFile) makeDirectory() error {
	if f.path == "" {
		return fmt.Errorf("there is no directory to save %s to: set StateDirectory= in the unit, XDG_STATE_HOME or HOME", f.what)
	}
	if err := os.MkdirAll(filepath.Dir(f.path), 0o700); err != nil {
		return fmt.Errorf("%s cannot be saved: %w", f.what, err)
	}
	return nil
}

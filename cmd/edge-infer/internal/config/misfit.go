package config

import (
	"errors"
	"fmt"
	"os"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config/form"
)

// fileError is every mistake of a file; as an error of a run it tells the first one.
type fileError struct{ mistakes []error }

func (e *fileError) Error() string {
	text := e.mistakes[0].Error()
	if more := len(e.mistakes) - 1; more > 0 {
		text += fmt.Sprintf(" (and %d more: edge-infer config check tells all)", more)
	}
	return text
}

// misfits tells what of a file does not fit the configuration in form.
func misfits(path string, found []form.Misfit) *fileError {
	told := make([]error, len(found))
	for i, f := range found {
		var mistake error
		switch {
		case f.Want != "":
			mistake = fmt.Errorf("%s %w%s", f.Key, must(f.Value, "must be "+f.Want), migratable(f.Key))
		case f.Near != "":
			mistake = fmt.Errorf("unknown key %q, did you mean %q?", f.Key, f.Near)
		default:
			mistake = fmt.Errorf("unknown key %q", f.Key)
		}
		told[i] = fmt.Errorf("config %s line %d: %w", path, f.Line, mistake)
	}
	return &fileError{told}
}

// CheckFile reads a file as run would, without flags, and gives every mistake that can be told without opening anything, with its line
// where the file has one.
func CheckFile(path string) (*Config, []error) {
	s := Sources{File: path}
	c, err := s.read()
	if file := new(fileError); errors.As(err, &file) {
		return nil, file.mistakes
	}
	if err != nil {
		return nil, []error{err}
	}
	found := c.mistakes(Everything())
	var places places
	if len(found) > 0 {
		places, _ = s.files(Default(), os.LookupEnv) // nothing new can be wrong
	}
	told := make([]error, len(found))
	for i, mistake := range found {
		told[i] = fmt.Errorf("%s: %w", places.of(mistake.key, path), mistake)
	}
	return c, told
}

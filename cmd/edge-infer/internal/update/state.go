package update

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/edge-infer/edge-infer/internal/atomicfile"
	"github.com/edge-infer/edge-infer/internal/boundedfile"
)

// fileName is the updater's file in the state directory.
const fileName = "update.json"

// memory is what an updater knows after a restart or a power cut.
type memory struct {
	// Trials counts how often the bundle with the digest Trying has begun its trial without an outcome.
	Trying   string                  `json:"trying,omitempty"`
	Trials   int                     `json:"trials,omitempty"`
	Last     *Outcome                `json:"last,omitempty"`
	Jobs     map[Sender]*finishedJob `json:"jobs,omitempty"` // the last one of each
	Settings appliedSettings         `json:"settings,omitzero"`
}

// readMemory reads the file in a state directory; a missing one is empty.
func readMemory(directory string) (m memory, err error) {
	path := filepath.Join(directory, fileName)
	data, err := boundedfile.Read(path, boundedfile.Small)
	if errors.Is(err, fs.ErrNotExist) {
		return memory{}, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &m)
	}
	if err != nil {
		return memory{}, fmt.Errorf("%s: %w (remove it: what was refused before is then tried again)", path, err)
	}
	return m, nil
}

// save writes the file, which a power cut leaves as it was or complete.
func (m *memory) save(directory string) error {
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if err := atomicfile.MkdirAll(directory, 0o700); err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(directory, fileName), data, 0o600)
}

// ReadOutcome returns how the newest bundle has fared, from the state directory of a daemon; nil if none was tried.
func ReadOutcome(directory string) (*Outcome, error) {
	m, err := readMemory(directory)
	return m.Last, err
}

// Print writes the outcome as a line.
func (o *Outcome) Print(out io.Writer) error {
	_, err := fmt.Fprintf(out, "%s: %s\n", o.Model, o.Text())
	return err
}

// Text is the outcome as a part of a sentence.
func (o *Outcome) Text() string {
	text := fmt.Sprintf("version %d ", o.Version)
	if o.Installed() {
		text += "was installed"
	} else {
		text += "was refused: " + o.Reason
	}
	if o.Agreement != nil {
		text += fmt.Sprintf(" (%.3f agreement on %d boxes in %d images)", *o.Agreement, o.Boxes, o.Images)
	}
	if l := o.Labelled; l != nil {
		text += fmt.Sprintf(" (mAP50-95 %.3f, %.3f before, on %d labelled images)", l.Candidate, l.Running, l.Images)
	}
	return text
}

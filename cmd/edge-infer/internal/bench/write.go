package bench

import (
	"encoding/json"
	"fmt"

	"github.com/edge-infer/edge-infer/internal/atomicfile"
)

// checkFiles checks that the document can be written.
func (b *Bench) checkFiles() error {
	if b.Output != "" {
		if err := atomicfile.Check(b.Output); err != nil {
			return fmt.Errorf("--output: %w", err)
		}
	}
	return nil
}

// write writes the document to b.Output, if set.
func (b *Bench) write(r *Report) error {
	if b.Output != "" {
		data, err := json.MarshalIndent(r, "", "  ")
		if err != nil {
			return err
		}
		if err := atomicfile.Write(b.Output, append(data, '\n'), 0o644); err != nil {
			return fmt.Errorf("--output: %w", err)
		}
	}
	return nil
}

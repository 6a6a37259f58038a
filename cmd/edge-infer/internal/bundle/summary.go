package bundle

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// Summary describes a bundle.
type Summary struct {
	Version int    `json:"v"`
	Source  string `json:"source"`
	Bundle  Info   `json:"bundle"`
	// SignedBy are the ids of the keys that its signatures state; VerifiedBy is the id of the trusted key that signed it, empty without
	// keys to compare.
	SignedBy   []string `json:"signed_by"`
	VerifiedBy string   `json:"verified_by,omitempty"`
	// Complete is set if all files were received and their digests checked.
	Complete bool `json:"complete,omitempty"`
}

// Print writes the summary as text.
func (s *Summary) Print(out io.Writer) error {
	b := &s.Bundle
	lines := [][2]string{{"name", b.Name}, {"version", fmt.Sprint(b.Version)}}
	add := func(name, value string) {
		if value != "" {
			lines = append(lines, [2]string{name, value})
		}
	}
	if !b.Expires.IsZero() {
		add("expires", b.Expires.UTC().Format(time.RFC3339))
	}
	add("about", b.Description)
	add("licence", b.Licence)
	if b.Confidence > 0 {
		add("confidence", fmt.Sprint(b.Confidence))
	}
	add("digest", b.Digest)
	add("signature", s.signature())
	if s.Complete {
		add("contents", "complete, all digests are right")
	}
	for _, line := range lines {
		if _, err := fmt.Fprintf(out, "%-12s%s\n", line[0], line[1]); err != nil {
			return err
		}
	}
	for at := range b.Files {
		f := &b.Files[at]
		text := fmt.Sprintf("%s, %s", f.Path, size(f.Bytes))
		if f.TensorRT != "" {
			text += fmt.Sprintf(", TensorRT %s on %s", f.TensorRT, f.GPU)
		}
		if _, err := fmt.Fprintf(out, "%-12s%s\n", "file", text); err != nil {
			return err
		}
	}
	return nil
}

// signature describes the signatures.
func (s *Summary) signature() string {
	switch {
	case s.VerifiedBy != "":
		return "valid, by key " + s.VerifiedBy
	case len(s.SignedBy) > 0:
		return "not checked, without --key; by key " + strings.Join(s.SignedBy, ", ")
	}
	return "none"
}

// size returns a number of bytes for a person.
func size(bytes int64) string {
	if bytes < 100_000 {
		return fmt.Sprintf("%d bytes", bytes)
	}
	return fmt.Sprintf("%.1f MB", float64(bytes)/1e6)
}

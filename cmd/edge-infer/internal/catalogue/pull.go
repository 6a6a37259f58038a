package catalogue

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/progress"
)

// Pull downloads a model into the store: a model of the catalogue by its name, or any model by its URL or file and its hash.
type Pull struct {
	Store Store
	// Source is a name of the catalogue, a URL or a file; SHA256 is the file's hash, not needed for a model of the catalogue.
	Source, SHA256 string
	// Mirror is the URL of a directory with copies of the catalogue's files, which is used instead of their publishers' addresses.
	Mirror string
	// Name is the model's name in the store; by default the catalogue's name, or the file's.
	Name string
	// MaxBytes limits a download; DefaultMaxBytes if 0.
	MaxBytes int64
	// Progress receives the number of KiB read.
	Progress progress.Reporter
	// StallTimeout is the longest time without data; DefaultStallTimeout if 0.
	StallTimeout time.Duration
	// Client performs the requests; http.DefaultClient if nil.
	Client Client
}

// PullResult is a downloaded model.
type PullResult struct {
	Entry
	Path string `json:"path"`
	// AlreadyPresent is set if the model had been downloaded before.
	AlreadyPresent bool `json:"was"`
	// Received is the number of bytes that this call has downloaded.
	Received int64 `json:"received_bytes"`
}

var hashForm = regexp.MustCompile(`^[0-9a-f]{64}$`)

// Run downloads the model. It resumes an interrupted download, and waits for another process that downloads the same model.
func (p *Pull) Run(ctx context.Context) (*PullResult, error) {
	e, err := p.entry()
	if err != nil {
		return nil, err
	}
	result := &PullResult{Entry: e, Path: p.Store.Path(e.Name)}
	if p.Store.holds(&e) {
		result.AlreadyPresent = true
		return result, nil
	}
	if p.Store.Bundle(e.Name) != "" {
		return nil, fmt.Errorf("model %s is installed from a bundle (edge-infer model rm %s first, or another --name)", e.Name, e.Name)
	}
	part, err := p.Store.OpenPart(ctx, e.SHA256)
	if err != nil {
		return nil, fmt.Errorf("model %s: %w", e.Name, err)
	}
	defer part.Close()
	if p.Store.holds(&e) { // installed by the process that had the lock
		result.AlreadyPresent = true
		return result, part.Remove()
	}
	if IsAddress(e.URL) {
		d := Download{
			URL: e.URL, Bytes: e.Bytes, MaxBytes: p.MaxBytes, Progress: p.Progress, StallTimeout: p.StallTimeout, Client: p.Client,
		}
		result.Received, err = d.To(ctx, part.File)
	} else {
		err = copyFile(e.URL, part.File)
	}
	if err != nil {
		return nil, fmt.Errorf("model %s: %w (fetch %s elsewhere, its sha256 is %s, and run edge-infer model pull FILE --sha256 %s)",
			e.Name, err, e.URL, e.SHA256, e.SHA256)
	}
	have, err := fileHash(part.Name())
	if err != nil {
		return nil, fmt.Errorf("model %s: %w", e.Name, err)
	}
	if have != e.SHA256 {
		return nil, errors.Join(fmt.Errorf("model %s: what came from %s has sha256 %s, not %s: it was changed or is another file and "+
			"was deleted", e.Name, e.URL, have, e.SHA256), part.Remove())
	}
	if err := p.Store.install(&e, part.Name()); err != nil {
		return nil, fmt.Errorf("model %s: %w", e.Name, err)
	}
	return result, nil
}

// entry returns the model to download. A file with the hash of a catalogue entry is that model, whatever its source.
func (p *Pull) entry() (Entry, error) {
	hash := strings.ToLower(p.SHA256)
	info, err := os.Stat(p.Source)
	if !IsAddress(p.Source) && err != nil {
		e, lookup := Lookup(p.Source)
		switch {
		case lookup != nil && strings.ContainsAny(p.Source, "./\\"):
			return Entry{}, fmt.Errorf("model: %w", err)
		case lookup != nil:
			return Entry{}, lookup
		case hash != "" && hash != e.SHA256:
			return Entry{}, fmt.Errorf("model %s: --sha256 %s is not the catalogue's %s", e.Name, hash, e.SHA256)
		}
		if p.Mirror != "" {
			e.URL = strings.TrimSuffix(p.Mirror, "/") + e.URL[strings.LastIndexByte(e.URL, '/'):]
		}
		return e, nil
	}
	if err == nil && hash == "" && info.Mode().IsRegular() { // a file of the catalogue needs no hash
		if own, err := fileHash(p.Source); err == nil && slices.ContainsFunc(Entries(), func(e Entry) bool { return e.SHA256 == own }) {
			hash = own
		}
	}
	if hash == "" {
		return Entry{}, fmt.Errorf("model %s is not in the catalogue: add --sha256, or use --model FILE", p.Source)
	}
	if !hashForm.MatchString(hash) {
		return Entry{}, fmt.Errorf("model %s: --sha256 %q must have 64 hexadecimal digits "+
			"(the publisher's hash, or the output of sha256sum FILE)", p.Source, p.SHA256)
	}
	e := Entry{SHA256: hash, Name: p.Name}
	all := Entries()
	if at := slices.IndexFunc(all, func(e Entry) bool { return e.SHA256 == hash }); at >= 0 {
		e = all[at]
	}
	e.URL = p.Source
	if e.Name == "" {
		base := filepath.Base(p.Source)
		if address, err := url.Parse(p.Source); err == nil && IsAddress(p.Source) {
			base = filepath.Base(address.Path)
		}
		e.Name = strings.TrimSuffix(base, filepath.Ext(base))
	}
	return e, CheckName(e.Name)
}

// IsAddress reports whether a location is a URL, not a name or a file.
func IsAddress(from string) bool {
	return strings.HasPrefix(from, "https://") || strings.HasPrefix(from, "http://")
}

func copyFile(from string, to *os.File) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	if err := to.Truncate(0); err != nil {
		return err
	}
	if _, err := io.Copy(to, source); err != nil {
		return err
	}
	return to.Sync()
}

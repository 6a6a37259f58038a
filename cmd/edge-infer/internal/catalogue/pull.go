package catalogue

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
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
	// Progress receives the number of KiB read.
	Progress progress.Reporter
	// StallTimeout is the longest time without data; a minute if 0.
	StallTimeout time.Duration
	// Client performs the requests; http.DefaultClient if nil.
	Client *http.Client
}

// PullResult is a downloaded model.
type PullResult struct {
	Entry
	Path string `json:"path"`
	// AlreadyPresent is set if the model had been downloaded before.
	AlreadyPresent bool `json:"was"`
}

// maxBytes limits downloads of unknown size.
const maxBytes = 4 << 30

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
	if err := os.MkdirAll(p.Store.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("model store: %w (set XDG_CACHE_HOME to a directory that can be written)", err)
	}
	part := filepath.Join(p.Store.Dir, "."+e.SHA256+".part")
	file, err := openPart(ctx, part)
	if err != nil {
		return nil, fmt.Errorf("model %s: %w", e.Name, err)
	}
	defer file.Close()
	if p.Store.holds(&e) { // installed by the process that had the lock
		result.AlreadyPresent = true
		return result, os.Remove(part)
	}
	if isAddress(e.URL) {
		err = p.download(ctx, &e, file)
	} else {
		err = copyFile(e.URL, file)
	}
	if err != nil {
		return nil, fmt.Errorf("model %s: %w (fetch %s elsewhere, its sha256 is %s, and run edge-infer model pull FILE --sha256 %s)",
			e.Name, err, e.URL, e.SHA256, e.SHA256)
	}
	have, err := fileHash(part)
	if err != nil {
		return nil, fmt.Errorf("model %s: %w", e.Name, err)
	}
	if have != e.SHA256 {
		return nil, errors.Join(fmt.Errorf("model %s: what came from %s has sha256 %s, not %s: it was changed or is another file and "+
			"was deleted", e.Name, e.URL, have, e.SHA256), os.Remove(part))
	}
	if err := p.Store.install(&e, part); err != nil {
		return nil, fmt.Errorf("model %s: %w", e.Name, err)
	}
	return result, nil
}

// entry returns the model to download. A file with the hash of a catalogue entry is that model, whatever its source.
func (p *Pull) entry() (Entry, error) {
	hash := strings.ToLower(p.SHA256)
	info, err := os.Stat(p.Source)
	if !isAddress(p.Source) && err != nil {
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
		if address, err := url.Parse(p.Source); err == nil && isAddress(p.Source) {
			base = filepath.Base(address.Path)
		}
		e.Name = strings.TrimSuffix(base, filepath.Ext(base))
	}
	return e, checkName(e.Name)
}

func isAddress(from string) bool {
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

// download appends the missing part of the model to the file.
func (p *Pull) download(ctx context.Context, e *Entry, file *os.File) error {
	have, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if e.Bytes > 0 && have == e.Bytes {
		return nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timeout := p.StallTimeout
	if timeout == 0 {
		timeout = time.Minute
	}
	stallTimer := time.AfterFunc(timeout, func() { cancel(fmt.Errorf("no data for %v", timeout)) })
	defer stallTimer.Stop()
	response, from, err := p.request(ctx, e.URL, have)
	if err != nil {
		return cause(ctx, err)
	}
	defer response.Body.Close()
	if from != have { // the server starts over
		if err := file.Truncate(from); err != nil {
			return err
		}
		if _, err := file.Seek(from, io.SeekStart); err != nil {
			return err
		}
	}
	total := e.Bytes
	if total == 0 && response.ContentLength > 0 {
		total = from + response.ContentLength
	}
	step := p.Progress.Begin("KiB")
	defer step.Close()
	limit := int64(maxBytes)
	if total > 0 {
		limit = total
	}
	reader := &countingReader{from: io.LimitReader(response.Body, limit-from+1), onRead: func(count int64) {
		stallTimer.Reset(timeout)
		step.Count(int((from+count)>>10), int(total>>10))
	}}
	count, err := io.Copy(file, reader)
	switch {
	case err != nil:
		return cause(ctx, err)
	case from+count > limit:
		return errors.Join(fmt.Errorf("larger than the expected %d bytes", limit), file.Truncate(0))
	case total > 0 && from+count < total:
		return fmt.Errorf("the connection ended after %d of %d bytes; run it again to resume", from+count, total)
	}
	return file.Sync()
}

// request requests the content from byte have on and returns the offset at which the response starts.
func (p *Pull) request(ctx context.Context, address string, have int64) (*http.Response, int64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, 0, err
	}
	if have > 0 {
		request.Header.Set("Range", fmt.Sprintf("bytes=%d-", have))
	}
	client := p.Client
	if client == nil {
		client = http.DefaultClient
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, 0, err
	}
	switch begin := fmt.Sprintf("bytes %d-", have); {
	case response.StatusCode == http.StatusOK:
		return response, 0, nil
	case response.StatusCode == http.StatusPartialContent && strings.HasPrefix(response.Header.Get("Content-Range"), begin):
		return response, have, nil
	case have > 0: // part is longer than the file, or the server does not support ranges
		_ = response.Body.Close() // discarded
		return p.request(ctx, address, 0)
	}
	_ = response.Body.Close() // discarded
	return nil, 0, fmt.Errorf("the server returned %s", response.Status)
}

// cause returns the reason why a context was cancelled, or the error itself.
func cause(ctx context.Context, err error) error {
	if why := context.Cause(ctx); why != nil {
		return why
	}
	if urlError, ok := errors.AsType[*url.Error](err); ok { // it repeats the URL
		return urlError.Err
	}
	return err
}

// countingReader reports the number of bytes read.
type countingReader struct {
	from   io.Reader
	count  int64
	onRead func(count int64)
}

func (l *countingReader) Read(to []byte) (int, error) {
	n, err := l.from.Read(to)
	l.count += int64(n)
	l.onRead(l.count)
	return n, err
}

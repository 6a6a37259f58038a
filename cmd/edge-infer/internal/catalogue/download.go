package catalogue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/progress"
)

// DefaultMaxBytes is the default limit of a download, so that no server can fill the disk.
const DefaultMaxBytes = 4 << 30

// DefaultStallTimeout is the default of the longest time without data.
const DefaultStallTimeout = time.Minute

// Interruption ends a download that may go on later: the server is busy, or the connection was lost.
type Interruption struct{ text string }

func (e *Interruption) Error() string { return e.text }

func interrupted(format string, arguments ...any) error {
	return &Interruption{fmt.Sprintf(format, arguments...)}
}

// Client performs HTTP requests.
type Client interface {
	Do(request *http.Request) (*http.Response, error)
}

// Download receives a file from an HTTP server.
type Download struct {
	URL string
	// Bytes is the size of the file, 0 if it is not known. Then MaxBytes limits it; DefaultMaxBytes if 0.
	Bytes, MaxBytes int64
	// Progress receives the number of KiB read.
	Progress progress.Reporter
	// StallTimeout is the longest time without data; DefaultStallTimeout if 0.
	StallTimeout time.Duration
	// Client performs the requests; http.DefaultClient if nil.
	Client Client
}

// To appends the missing part to a file, syncs it, and returns the number of bytes received. After an error the file has what came until
// then, and the next call resumes.
func (d *Download) To(ctx context.Context, file *os.File) (received int64, err error) {
	have, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return 0, err
	}
	if d.Bytes > 0 && have == d.Bytes {
		return 0, nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timeout := cmp.Or(d.StallTimeout, DefaultStallTimeout)
	stallTimer := time.AfterFunc(timeout, func() { cancel(interrupted("no data for %v", timeout)) })
	defer stallTimer.Stop()
	response, from, err := d.request(ctx, have)
	if err != nil {
		return 0, cause(ctx, err)
	}
	defer response.Body.Close()
	if from != have { // the server starts over
		if err := file.Truncate(from); err != nil {
			return 0, err
		}
		if _, err := file.Seek(from, io.SeekStart); err != nil {
			return 0, err
		}
	}
	total, limit, err := d.limits(from, response.ContentLength)
	if err != nil {
		return 0, err
	}
	step := d.Progress.Begin("KiB")
	defer step.Close()
	reader := &CountingReader{From: io.LimitReader(response.Body, limit-from+1), OnRead: func(count int64) {
		stallTimer.Reset(timeout)
		step.Count(int((from+count)>>10), int(total>>10))
	}}
	count, err := io.Copy(file, reader)
	switch {
	case err != nil:
		return count, cause(ctx, err)
	case from+count > limit && total > 0:
		return count, errors.Join(fmt.Errorf("larger than the expected %d bytes", limit), file.Truncate(0))
	case from+count > limit:
		return count, errors.Join(fmt.Errorf("larger than the limit of %d bytes (--max-size raises it)", limit), file.Truncate(0))
	case total > 0 && from+count < total:
		return count, interrupted("the connection ended after %d of %d bytes; run it again to resume", from+count, total)
	}
	return count, file.Sync()
}

// limits returns the size of the file, 0 if it is not known, and the number of bytes that may be stored. length is the Content-Length of a
// response that starts at byte from, -1 if it has none.
func (d *Download) limits(from, length int64) (total, limit int64, err error) {
	total = d.Bytes
	switch {
	case total > 0 && length >= 0 && from+length != total:
		return 0, 0, fmt.Errorf("%d bytes are announced instead of %d", from+length, total)
	case total == 0 && length > 0:
		total = from + length
	}
	limit = cmp.Or(d.MaxBytes, DefaultMaxBytes)
	if total > limit {
		return 0, 0, fmt.Errorf("%d bytes are announced, the limit is %d (--max-size raises it)", total, limit)
	}
	if total > 0 {
		limit = total
	}
	return total, limit, nil
}

// request requests the content from byte have on and returns the offset at which the response starts.
func (d *Download) request(ctx context.Context, have int64) (*http.Response, int64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, d.URL, http.NoBody)
	if err != nil {
		return nil, 0, err
	}
	switch {
	case have > 0 && d.Bytes > have: // some registries need the end of a range
		request.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", have, d.Bytes-1))
	case have > 0:
		request.Header.Set("Range", fmt.Sprintf("bytes=%d-", have))
	}
	client := d.Client
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
		return d.request(ctx, 0)
	}
	_ = response.Body.Close() // discarded
	if response.StatusCode >= http.StatusInternalServerError || response.StatusCode == http.StatusTooManyRequests {
		return nil, 0, interrupted("the server returned %s", response.Status)
	}
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

// CountingReader reports the number of bytes read so far to OnRead.
type CountingReader struct {
	From   io.Reader
	OnRead func(count int64)

	count int64
}

// Read implements io.Reader.
func (r *CountingReader) Read(to []byte) (int, error) {
	n, err := r.From.Read(to)
	r.count += int64(n)
	r.OnRead(r.count)
	return n, err
}

// Package upload copies clips and snapshots to a bucket of an S3-compatible server. What waits is in the event store, so that nothing is
// forgotten by a restart.
package upload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"path"
	"sync"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/httperror"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/store"
	"github.com/edge-infer/edge-infer/internal/backoff"
	"github.com/edge-infer/edge-infer/mqtt/spool"
)

// Queue holds the files that wait; *store.Store is one.
type Queue interface {
	// NextUpload returns the first file after a number, nil if there is none.
	NextUpload(ctx context.Context, after int64) (*store.Upload, error)
	// UploadDone removes a file from those that wait.
	UploadDone(ctx context.Context, u *store.Upload) error
	WaitingUploads(ctx context.Context) (int, error)
}

// Uploader copies files, one at a time, oldest first. Set the fields, Open it, Run it.
type Uploader struct {
	Endpoint string // http or https and a host
	Bucket   string
	Prefix   string // of all object names
	Region   string // empty: the server is asked
	// CredentialsFile is in the format of AWS; empty for the variables AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.
	CredentialsFile string
	Queue           Queue
	Logger          *slog.Logger

	// Replaced by tests.
	retry backoff.Exponential
	poll  time.Duration
	slack time.Duration // time limit of a copy, besides that for its size

	client *minio.Client // set by Open

	mu    sync.Mutex
	state Status
}

// Defaults of the fields for tests.
const (
	retryMin     = 2 * time.Second
	retryMax     = 5 * time.Minute
	pollInterval = 2 * time.Second
	timeLimit    = time.Minute
	slowest      = 32 << 10 // bytes per second; a slower copy is given up and tried again
)

// Status is the state of copying. Counters run from the start.
type Status struct {
	Uploaded uint64 `json:"uploaded"` // files
	Bytes    uint64 `json:"bytes"`
	Failures uint64 `json:"failures"` // attempts that failed
	Lost     uint64 `json:"lost"`     // files that were removed from the disk before they could be copied
	Waiting  int    `json:"waiting"`
	Error    string `json:"error,omitempty"` // why the newest attempt failed; empty after one that did not
}

// Open creates the client. It connects to nothing.
func (u *Uploader) Open() error {
	u.retry = u.retry.OrElse(backoff.Exponential{Min: retryMin, Max: retryMax})
	u.poll = cmp.Or(u.poll, pollInterval)
	u.slack = cmp.Or(u.slack, timeLimit)
	address, err := url.Parse(u.Endpoint)
	if err != nil {
		return fmt.Errorf("open upload: %w", err)
	}
	secrets := credentials.NewEnvAWS()
	if u.CredentialsFile != "" {
		secrets = credentials.New(&awsFile{credentials.FileAWSCredentials{Filename: u.CredentialsFile}})
	}
	transport, err := minio.DefaultTransport(address.Scheme == "https")
	if err != nil {
		return fmt.Errorf("open upload: %w", err)
	}
	u.client, err = minio.New(address.Host, &minio.Options{
		Creds: secrets, Secure: address.Scheme == "https", Region: u.Region, Transport: transport, MaxRetries: 1,
	})
	if err != nil {
		return fmt.Errorf("open upload: %w", err)
	}
	return nil
}

// Check returns an error unless the bucket can be reached with the credentials. It needs Open.
func (u *Uploader) Check(ctx context.Context) error {
	found, err := u.client.BucketExists(ctx, u.Bucket)
	if err == nil && !found {
		err = fmt.Errorf("the server has no bucket %q", u.Bucket)
	}
	return reason(err)
}

// Run copies until ctx ends. A file that fails does not keep the others from being tried. It must be called once.
func (u *Uploader) Run(ctx context.Context) error {
	after, failures := int64(0), 0
	var counted time.Time
	for ctx.Err() == nil {
		if time.Since(counted) >= u.poll {
			counted = time.Now()
			u.count(ctx)
		}
		pause := u.poll
		next, err := u.Queue.NextUpload(ctx, after) // the event store reports why it fails
		switch {
		case err == nil && next == nil:
			after = 0
		case err == nil:
			after = next.Number
			pause = 0
			err = u.copy(ctx, next)
			if ctx.Err() != nil {
				break
			}
			u.record(err)
			failures++
			if err == nil {
				failures = 0
			} else {
				pause = u.retry.After(failures - 1)
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
	return nil
}

// count publishes the number of files that wait.
func (u *Uploader) count(ctx context.Context) {
	waiting, err := u.Queue.WaitingUploads(ctx)
	if err != nil {
		return // the event store reports why
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.state.Waiting = waiting
}

// record publishes and logs the outcome of an attempt.
func (u *Uploader) record(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	u.mu.Lock()
	before := u.state.Error
	u.state.Error = text
	if err != nil {
		u.state.Failures++
	}
	u.mu.Unlock()
	switch {
	case err != nil && text != before:
		u.Logger.Warn("upload failed", "server", u.Endpoint, "error", err)
	case err == nil && before != "":
		u.Logger.Info("upload works again", "server", u.Endpoint)
	}
}

// copy copies a file and removes it from those that wait.
func (u *Uploader) copy(ctx context.Context, next *store.Upload) error {
	file, err := next.Open()
	if errors.Is(err, fs.ErrNotExist) {
		u.mu.Lock()
		u.state.Lost++
		u.mu.Unlock()
		return u.Queue.UploadDone(ctx, next)
	}
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, u.slack+time.Duration(info.Size()/slowest)*time.Second)
	defer cancel()
	// One request each: parts of an interrupted copy would stay on the server.
	_, err = u.client.PutObject(limited, u.Bucket, u.object(next), file, info.Size(), minio.PutObjectOptions{
		ContentType: contentType(next.Kind), DisableMultipart: true,
	})
	if err != nil {
		return reason(err)
	}
	u.mu.Lock()
	u.state.Uploaded++
	u.state.Bytes += uint64(info.Size())
	u.mu.Unlock()
	return u.Queue.UploadDone(ctx, next)
}

// object returns the name of a file's object. It depends on nothing that changes, so that a repeated copy replaces the first one.
func (u *Uploader) object(next *store.Upload) string {
	ending := ".mp4"
	if next.Kind == store.UploadSnapshot {
		ending = ".jpg"
	}
	return u.Prefix + path.Join(spool.DirName(next.Camera), next.Start.UTC().Format(time.DateOnly), next.ID+ending)
}

func contentType(kind store.UploadKind) string {
	if kind == store.UploadSnapshot {
		return "image/jpeg"
	}
	return "video/mp4"
}

// reason returns why a request failed, with the status of the answer if there is one.
func reason(err error) error {
	var answer minio.ErrorResponse
	if errors.As(err, &answer) {
		return fmt.Errorf("the server answers %d: %w", answer.StatusCode, err)
	}
	return httperror.Reason(err, "the server")
}

// Status returns the current state. It may be called from any goroutine and does not wait for the disk.
func (u *Uploader) Status() Status {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.state
}

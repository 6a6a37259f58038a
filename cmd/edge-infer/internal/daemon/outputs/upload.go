package outputs

import (
	"context"
	"sync/atomic"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/site"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/store"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/upload"
)

// uploads copies clips and snapshots to a server. Its settings change while the files wait in the event store.
type uploads struct {
	outputs *Outputs

	now  atomic.Pointer[upload.Uploader] // nil without a server
	stop func()                          // ends its Run
}

// uploadKinds returns the files that are copied to a server.
func uploadKinds(u *config.Upload) store.UploadKinds {
	if u.Endpoint == "" {
		return store.UploadKinds{}
	}
	return store.UploadKinds{Clips: u.Clips, Snapshots: u.Snapshots}
}

// Open creates the uploader, if a server is configured and there is an event store.
func (u *uploads) Open() error { return u.set(&u.outputs.Settings.Upload) }

// Compare implements output. Credentials are read for each request, so that their file does not matter.
func (u *uploads) Compare(change *site.OutputChange) site.Change {
	return unlike("upload", change.Was.Upload != change.Next.Upload, site.Reopen, "")
}

// Files implements output.
func (u *uploads) Files(*site.Outputs) []string { return nil }

// Reload implements output. The copy in progress is broken off, and begun again by the next uploader.
func (u *uploads) Reload(_ context.Context, change *site.OutputChange) error {
	return u.set(&change.Next.Upload)
}

// set replaces the uploader. An error changes nothing.
func (u *uploads) set(settings *config.Upload) error {
	if u.outputs.store == nil {
		return nil
	}
	var next *upload.Uploader
	if settings.Endpoint != "" {
		next = upload.New(settings)
		next.Queue, next.Logger = u.outputs.store, u.outputs.Logger
		if err := next.Open(); err != nil {
			return err
		}
	}
	if u.stop != nil {
		u.stop()
		u.stop = nil
	}
	u.outputs.store.SetUploads(uploadKinds(settings))
	u.now.Store(next)
	if next != nil {
		u.stop = u.outputs.background.Start(next.Run)
	}
	return nil
}

// Status returns the state of copying, nil without a server.
func (u *uploads) Status() *upload.Status {
	uploader := u.now.Load()
	if uploader == nil {
		return nil
	}
	status := uploader.Status()
	return &status
}

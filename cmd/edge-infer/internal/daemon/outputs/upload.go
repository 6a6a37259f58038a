package outputs

import (
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/store"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/upload"
)

// uploads returns the files that are copied to a server.
func uploads(u *config.Upload) store.UploadKinds {
	if u.Endpoint == "" {
		return store.UploadKinds{}
	}
	return store.UploadKinds{Clips: u.Clips, Snapshots: u.Snapshots}
}

// openUpload creates the uploader of clips and snapshots, if a server is configured.
func (o *Outputs) openUpload() error {
	if o.store == nil || o.Config.Upload.Endpoint == "" {
		return nil
	}
	uploader := upload.New(&o.Config.Upload)
	uploader.Queue, uploader.Logger = o.store, o.Logger
	err := uploader.Open()
	if err != nil {
		return err
	}
	o.uploader = uploader
	return nil
}

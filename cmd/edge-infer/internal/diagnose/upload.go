package diagnose

import (
	"context"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/upload"
)

// upload checks that the bucket of clips and snapshots can be reached with the credentials. It writes nothing.
func (d *Doctor) upload(ctx context.Context) []Check {
	const name = "upload"
	settings := &d.Config.Upload
	if settings.Endpoint == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, d.Timeout)
	defer cancel()
	uploader := upload.New(settings)
	err := uploader.Open()
	if err == nil {
		err = uploader.Check(ctx)
	}
	if err != nil {
		return []Check{warn(name, "check upload.endpoint, the bucket and the credentials; files wait in the event store", "%v", err)}
	}
	return []Check{ok(name, "bucket %s at %s", settings.Bucket, settings.Endpoint)}
}

package upload

import "github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"

// New returns the configured uploader, without a queue.
func New(u *config.Upload) *Uploader {
	return &Uploader{Endpoint: u.Endpoint, Bucket: u.Bucket, Prefix: u.Prefix, Region: u.Region, CredentialsFile: u.CredentialsFile}
}

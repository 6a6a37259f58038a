package config

import "net/url"

// Upload configures the copies of clips and snapshots on an S3-compatible server.
type Upload struct {
	Endpoint        string `yaml:"endpoint"`
	Bucket          string `yaml:"bucket"`
	Prefix          string `yaml:"prefix"`
	Region          string `yaml:"region"`
	CredentialsFile string `yaml:"credentials_file"`
	Clips           bool   `yaml:"clips"`
	Snapshots       bool   `yaml:"snapshots"`
}

func (u *Upload) settings() []setting {
	return []setting{
		{
			"upload.endpoint", "", text(&u.Endpoint), u.checkEndpoint,
			"address of an S3-compatible server that clips and snapshots are copied to; empty: none",
		},
		{"upload.bucket", "", text(&u.Bucket), nil, "bucket, which must exist"},
		{"upload.prefix", "", text(&u.Prefix), nil, "begins the names of all objects, such as edge-infer/gate/"},
		{"upload.region", "", text(&u.Region), nil, "region of the bucket; empty: the server is asked"},
		{
			"upload.credentials_file", "", text(&u.CredentialsFile), nil,
			"AWS credentials file; empty: $AWS_ACCESS_KEY_ID and $AWS_SECRET_ACCESS_KEY",
		},
		{"upload.clips", "", yes(&u.Clips), nil, "copy clips when they are complete"},
		{"upload.snapshots", "", yes(&u.Snapshots), nil, "copy the whole frame of each event when its object is gone"},
	}
}

func (u *Upload) checkEndpoint() error {
	if u.Endpoint == "" {
		return nil
	}
	address, err := url.Parse(u.Endpoint)
	if err != nil || (address.Scheme != "https" && address.Scheme != "http") || address.Host == "" || address.User != nil ||
		(address.Path != "" && address.Path != "/") {
		return must("***", "must be https:// or http:// and a host, without a path or a user")
	}
	return nil
}

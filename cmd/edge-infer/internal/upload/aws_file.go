package upload

import (
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/edge-infer/edge-infer/internal/boundedfile"
)

// awsFile reads a file in the format of AWS, each time that the client asks. A path that cannot be read, such as a pipe, is an error.
type awsFile struct{ credentials.FileAWSCredentials }

// Retrieve implements credentials.Provider.
func (f *awsFile) Retrieve() (credentials.Value, error) {
	return f.RetrieveWithCredContext(nil)
}

// RetrieveWithCredContext implements credentials.Provider.
func (f *awsFile) RetrieveWithCredContext(c *credentials.CredContext) (credentials.Value, error) {
	if _, err := boundedfile.Read(f.Filename, boundedfile.Small); err != nil {
		return credentials.Value{}, err
	}
	return f.FileAWSCredentials.RetrieveWithCredContext(c)
}

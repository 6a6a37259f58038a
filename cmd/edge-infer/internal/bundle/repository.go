package bundle

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/opencontainers/go-digest"
	oci "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/catalogue"
)

// repository is a bundle in a registry.
type repository struct {
	source    *Source
	reference registry.Reference
	remote    *remote.Repository
	client    *http.Client
}

// openRepository prepares the requests to a registry; it sends none.
func (s *Source) openRepository() (*repository, error) {
	reference, err := registry.ParseReference(s.Location)
	if err != nil || reference.Reference == "" {
		return nil, errors.New("not a file and not a bundle in a registry, HOST/NAME:TAG or HOST/NAME@sha256:DIGEST with a name in lower case")
	}
	store := credentials.NewMemoryStore()
	if os.Getenv("HOME") != "" || os.Getenv("DOCKER_CONFIG") != "" { // a service without a home has no credentials
		store, err = credentials.NewStoreFromDocker(credentials.StoreOptions{})
	}
	if err != nil {
		return nil, fmt.Errorf("credentials of Docker: %w (mend the file, or docker login %s)", err, reference.Registry)
	}
	client := s.client()
	r := &repository{source: s, reference: reference, client: client, remote: &remote.Repository{
		Reference: reference, PlainHTTP: s.PlainHTTP || isLoopback(hostname(reference.Registry)),
		Client:             &auth.Client{Client: client, Cache: auth.NewCache(), Credential: credentials.Credential(store)},
		ManifestMediaTypes: []string{oci.MediaTypeImageManifest},
		MaxMetadataBytes:   maxManifest, ReferrerListMaxPages: 4,
	}}
	return r, nil
}

// hostname returns the host of HOST[:PORT].
func hostname(host string) string {
	u, err := url.Parse("http://" + host)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// explain adds the remedy to what a registry answers.
func (r *repository) explain(err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	response, answered := errors.AsType[*errcode.ErrorResponse](err)
	switch {
	case errors.Is(err, errdef.ErrNotFound), answered && response.StatusCode == http.StatusNotFound:
		return fmt.Errorf("%s has no such bundle (check its name and tag)", r.reference.Registry)
	case errors.Is(err, auth.ErrBasicCredentialNotFound),
		answered && (response.StatusCode == http.StatusUnauthorized || response.StatusCode == http.StatusForbidden):
		return fmt.Errorf("%s refuses access (docker login %s, or check the name)", r.reference.Registry, r.reference.Registry)
	case answered:
		return fmt.Errorf("%s answered %d %s: %.200s (try again later)", r.reference.Registry, response.StatusCode,
			http.StatusText(response.StatusCode), response.Errors.Error())
	}
	if urlError, ok := errors.AsType[*url.Error](err); ok { // it repeats the address
		err = urlError.Err
	}
	return fmt.Errorf("%s: %w (check the registry and the network)", r.reference.Registry, err)
}

// withTimeout returns a context for requests of small answers.
func (r *repository) withTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	timeout := r.source.stallTimeout()
	return context.WithTimeoutCause(ctx, timeout, fmt.Errorf("no answer for %v", timeout))
}

// manifest returns the manifest that the reference names.
func (r *repository) manifest(ctx context.Context) ([]byte, error) {
	ctx, cancel := r.withTimeout(ctx)
	defer cancel()
	d, body, err := r.remote.FetchReference(ctx, r.reference.Reference)
	if err != nil {
		return nil, r.explain(orCause(ctx, err))
	}
	defer body.Close()
	if d.MediaType != oci.MediaTypeImageManifest {
		return nil, fmt.Errorf("it is a %.100s, not a model bundle (check its name and tag)", d.MediaType)
	}
	data, err := io.ReadAll(io.LimitReader(body, maxManifest+1))
	if err != nil {
		return nil, r.explain(orCause(ctx, err))
	}
	if d.Size > maxManifest || len(data) > maxManifest {
		return nil, fmt.Errorf("its manifest has over %d bytes (check its name and tag)", maxManifest)
	}
	if digest.FromBytes(data) != d.Digest {
		return nil, fmt.Errorf("%s sent another manifest than %s (do not trust it, get the bundle elsewhere)", r.reference.Registry, d.Digest)
	}
	return data, nil
}

// orCause returns the reason why a context was cancelled, or the error itself.
func orCause(ctx context.Context, err error) error {
	if why := context.Cause(ctx); why != nil {
		return why
	}
	return err
}

// signatures returns the signatures that the registry lists as referrers of the manifest. Those that cannot be read are left out.
func (r *repository) signatures(ctx context.Context, manifest []byte) ([][]byte, error) {
	ctx, cancel := r.withTimeout(ctx)
	defer cancel()
	subject := descriptor(oci.MediaTypeImageManifest, manifest)
	var listed []oci.Descriptor
	err := r.remote.Referrers(ctx, subject, typeSignature, func(some []oci.Descriptor) error {
		listed = append(listed, some...)
		return nil
	})
	if err != nil && !errors.Is(err, errdef.ErrNotFound) {
		return nil, r.explain(orCause(ctx, err))
	}
	if len(listed) > maxManifests {
		listed = listed[:maxManifests]
	}
	var found [][]byte
	var unread error
	for at := range listed {
		text, err := r.signature(ctx, &listed[at], subject.Digest)
		if err != nil {
			unread = errors.Join(unread, fmt.Errorf("its signature: %w", r.explain(orCause(ctx, err))))
			continue
		}
		found = append(found, text)
	}
	if len(found) > 0 {
		unread = nil
	}
	return found, unread
}

// signature returns the text of a signature, by the descriptor of its manifest.
func (r *repository) signature(ctx context.Context, d *oci.Descriptor, subject digest.Digest) ([]byte, error) {
	if d.MediaType != oci.MediaTypeImageManifest {
		return nil, fmt.Errorf("it is a %.100s", d.MediaType)
	}
	data, err := fetchSmall(ctx, r.remote.Manifests(), d, maxManifest)
	if err != nil {
		return nil, err
	}
	var m oci.Manifest
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, err
	}
	layer := signatureLayer(&m, subject)
	if layer == nil {
		return nil, errors.New("its manifest does not refer to the bundle")
	}
	return fetchSmall(ctx, r.remote.Blobs(), layer, maxSignature)
}

// fetchSmall returns a content of at most that many bytes and checks its digest.
func fetchSmall(ctx context.Context, from registry.BlobStore, d *oci.Descriptor, most int64) ([]byte, error) {
	if err := checkDescriptor(d, most); err != nil {
		return nil, err
	}
	body, err := from.Fetch(ctx, *d)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	data, err := io.ReadAll(io.LimitReader(body, d.Size+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) != d.Size || digest.FromBytes(data) != d.Digest {
		return nil, fmt.Errorf("the registry sent other contents than %s", d.Digest)
	}
	return data, nil
}

// receive downloads the contents of a file.
func (r *repository) receive(ctx context.Context, f *File, to *os.File) (received int64, err error) {
	scheme := "https"
	if r.remote.PlainHTTP {
		scheme = "http"
	}
	d := catalogue.Download{
		URL: fmt.Sprintf("%s://%s/v2/%s/blobs/%s", scheme, r.reference.Host(), r.reference.Repository, f.descriptor().Digest), Bytes: f.Bytes,
		MaxBytes: r.source.maxBytes(), Progress: r.source.Progress, StallTimeout: r.source.StallTimeout, Client: r.remote.Client,
	}
	return d.To(auth.AppendRepositoryScope(ctx, r.reference, auth.ActionPull), to)
}

// Close closes the connections to the registry.
func (r *repository) Close() error {
	r.client.CloseIdleConnections()
	return nil
}

// push uploads a bundle: its contents, its manifest, its signatures, and the tag last, so that a tag never names half a bundle.
func (r *repository) push(ctx context.Context, l *layout, i *Info) error {
	files := append([]File{i.config}, i.Files...)
	for at := range files {
		if err := r.pushBlob(ctx, l, &files[at]); err != nil {
			return err
		}
	}
	if err := r.remote.Push(ctx, l.bundle, bytes.NewReader(l.data)); err != nil {
		return err
	}
	if len(l.signed) > 0 {
		if err := r.pushSmall(ctx, emptyConfig); err != nil {
			return err
		}
	}
	for _, text := range l.signed {
		if err := r.pushSmall(ctx, text); err != nil {
			return err
		}
		data, err := signatureManifest(l.bundle, text)
		if err != nil {
			return err
		}
		if err := r.remote.Push(ctx, descriptor(oci.MediaTypeImageManifest, data), bytes.NewReader(data)); err != nil {
			return err
		}
	}
	return r.remote.PushReference(ctx, l.bundle, bytes.NewReader(l.data), r.reference.Reference)
}

// pushSmall uploads a content.
func (r *repository) pushSmall(ctx context.Context, data []byte) error {
	return r.remote.Blobs().Push(ctx, descriptor(typeSignature, data), bytes.NewReader(data))
}

// pushBlob uploads a file unless the registry has it.
func (r *repository) pushBlob(ctx context.Context, l *layout, f *File) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	d := f.descriptor()
	at, ok := l.parts[blobName(d.Digest)]
	if !ok || at.size != d.Size {
		return fmt.Errorf("the file has no %s or less of it (copy or download it again)", d.Digest)
	}
	timeout := r.source.stallTimeout()
	stallTimer := time.AfterFunc(timeout, func() { cancel(fmt.Errorf("no data for %v", timeout)) })
	defer stallTimer.Stop()
	there, err := r.remote.Blobs().Exists(ctx, d)
	if err != nil || there {
		return orCause(ctx, err)
	}
	step := r.source.Progress.Begin("KiB")
	defer step.Close()
	body := &catalogue.CountingReader{From: io.NewSectionReader(l.file, at.offset, at.size), OnRead: func(count int64) {
		stallTimer.Reset(timeout)
		step.Count(int(count>>10), int(at.size>>10))
	}}
	return orCause(ctx, r.remote.Blobs().Push(ctx, d, body))
}

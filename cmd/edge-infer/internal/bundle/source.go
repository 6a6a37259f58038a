package bundle

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/catalogue"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/progress"
)

// Source is where a bundle is and how it is reached.
type Source struct {
	// Location is a file, an http(s) address of a file, HOST/NAME:TAG or HOST/NAME@sha256:DIGEST in a registry, or the name of an
	// installed bundle.
	Location string
	// Contents names what is at an address, so that a download is resumed only with the same; empty where it never changes.
	Contents string
	// Remote refuses files of this machine and installed bundles: the location comes from another machine.
	Remote bool
	// PlainHTTP permits http without TLS to other machines, and uses it for registries.
	PlainHTTP bool
	// MaxBytes limits the size of the bundle; catalogue.DefaultMaxBytes if 0.
	MaxBytes int64
	// Progress receives the number of KiB read.
	Progress progress.Reporter
	// StallTimeout is the longest time without data; catalogue.DefaultStallTimeout if 0.
	StallTimeout time.Duration
	// Transport performs HTTP requests; nil for that of net/http.
	Transport http.RoundTripper
}

// source is an open Source.
type source interface {
	// manifest returns the manifest of the bundle, at most maxManifest bytes.
	manifest(ctx context.Context) ([]byte, error)
	// signatures returns the signatures of the manifest, at most maxManifests of maxSignature bytes.
	signatures(ctx context.Context, manifest []byte) ([][]byte, error)
	// receive writes the contents of a file of the bundle, whose digest the caller checks. to may hold the beginning of it already.
	receive(ctx context.Context, f *File, to *os.File) (received int64, err error)
	Close() error
}

// open opens the source. A file at an address is received in the store, where an interrupted download is resumed.
func (s *Source) open(ctx context.Context, store catalogue.Store) (source, error) {
	if catalogue.IsAddress(s.Location) {
		return s.openAddress(ctx, store)
	}
	if _, err := os.Stat(s.Location); !s.Remote && (err == nil || isPath(s.Location)) {
		return openLayout(s.Location)
	}
	if strings.Contains(s.Location, "/") && !strings.HasPrefix(s.Location, "/") {
		return s.openRepository()
	}
	if s.Remote {
		return nil, errors.New("it is neither an https:// address nor HOST/NAME:TAG of a registry")
	}
	return openInstalled(s.Location)
}

// isPath reports whether a location that does not exist was meant to be a file.
func isPath(location string) bool {
	extension := filepath.Ext(location)
	return extension == ".tar" || extension == swuExtension || strings.HasPrefix(location, "/") || strings.HasPrefix(location, ".")
}

// client returns the client of all requests. They go without TLS only where that is
// permitted, after redirects as well.
func (s *Source) client() *http.Client {
	transport := s.Transport
	if transport == nil {
		own := http.DefaultTransport.(*http.Transport).Clone()
		own.ResponseHeaderTimeout = 2 * s.stallTimeout() // for uploads, other requests have time limits of their own
		transport = own
	}
	return &http.Client{Transport: &guard{transport: transport, plainHTTP: s.PlainHTTP}}
}

func (s *Source) stallTimeout() time.Duration {
	return cmp.Or(s.StallTimeout, catalogue.DefaultStallTimeout)
}

func (s *Source) maxBytes() int64 { return cmp.Or(s.MaxBytes, catalogue.DefaultMaxBytes) }

// guard is a transport that refuses http without TLS to other machines unless plainHTTP is set.
type guard struct {
	transport http.RoundTripper
	plainHTTP bool
}

// RoundTrip implements http.RoundTripper.
func (g *guard) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Scheme != "https" && !g.plainHTTP && !isLoopback(request.URL.Hostname()) {
		return nil, fmt.Errorf("http:// to %s is neither encrypted nor authenticated (use https, or --plain-http)", request.URL.Host)
	}
	return g.transport.RoundTrip(request)
}

// CloseIdleConnections closes the connections that http.Client keeps.
func (g *guard) CloseIdleConnections() {
	if closer, ok := g.transport.(interface{ CloseIdleConnections() }); ok {
		closer.CloseIdleConnections()
	}
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// address is a downloaded layout.
type address struct {
	*layout
	part   *catalogue.Part
	client *http.Client
}

// openAddress downloads the file at an address.
func (s *Source) openAddress(ctx context.Context, store catalogue.Store) (source, error) {
	u, err := url.Parse(s.Location)
	if err != nil || u.Host == "" {
		return nil, errors.New("the address cannot be read (it must be https://HOST/PATH)")
	}
	sum := sha256.Sum256([]byte(s.Location + "\n" + s.Contents))
	part, err := store.OpenPart(ctx, hex.EncodeToString(sum[:]))
	if err != nil {
		return nil, err
	}
	client := s.client()
	d := catalogue.Download{URL: s.Location, MaxBytes: s.maxBytes(), Progress: s.Progress, StallTimeout: s.StallTimeout, Client: client}
	if _, err := d.To(ctx, part.File); err != nil {
		client.CloseIdleConnections()
		return nil, errors.Join(err, part.Close())
	}
	l, err := openLayout(part.Name())
	if err != nil { // there is nothing to resume
		client.CloseIdleConnections()
		return nil, errors.Join(err, part.Remove(), part.Close())
	}
	return &address{layout: l, part: part, client: client}, nil
}

// Close removes the downloaded file, which is complete and cannot be resumed.
func (a *address) Close() error {
	a.client.CloseIdleConnections()
	return errors.Join(a.layout.Close(), a.part.Remove(), a.part.Close())
}

// The names of the manifest and its first signature in the directory of an installed bundle.
const (
	manifestName  = "manifest.json"
	signatureName = manifestName + ".minisig"
)

// installed is a bundle in the model store.
type installed struct{ dir string }

func openInstalled(name string) (source, error) {
	store, err := catalogue.Open()
	if err != nil {
		return nil, err
	}
	dir := store.Bundle(name)
	if dir == "" {
		return nil, errors.New("no such file, and no bundle of that name is installed (name a file, an https:// address, or HOST/NAME:TAG)")
	}
	return installed{dir}, nil
}

func (i installed) manifest(context.Context) ([]byte, error) {
	return os.ReadFile(filepath.Join(i.dir, manifestName))
}

func (i installed) signatures(context.Context, []byte) ([][]byte, error) {
	text, err := os.ReadFile(filepath.Join(i.dir, signatureName))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return [][]byte{text}, err
}

func (i installed) receive(context.Context, *File, *os.File) (int64, error) {
	return 0, errors.New("it is installed, and checked whenever it is opened (verify a file, an address, or HOST/NAME:TAG)")
}

func (i installed) Close() error { return nil }

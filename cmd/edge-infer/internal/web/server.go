// Package web serves the daemon's web page: live images with detections, the zone editor, events, history, engine state, metrics and
// health. It never blocks the frame loop.
package web

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/access"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/audit"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/web/live"
	"github.com/edge-infer/edge-infer/internal/backoff"
	"github.com/edge-infer/edge-infer/internal/boundedfile"
	"github.com/edge-infer/edge-infer/internal/inflight"
)

// Defaults for zero fields of Server.
const (
	DefaultFrameRate  = 12
	DefaultImageWidth = 960
	DefaultViewers    = 24
	DefaultMaxBytes   = 32 << 20
)

// Limits on clients.
const (
	headerBytes = 16 << 10
	bodyBytes   = 256 << 10
	// Connections without authentication, in total and per address prefix, and authenticated ones.
	anonymous     = 96
	perPrefix     = 48
	authenticated = 64
)

// limits are the timeouts for clients.
type limits struct {
	header, request, idle time.Duration
	// write is the timeout for one part of a stream; a slower viewer is disconnected. After a heartbeat of silence something is written to a
	// stream, to detect clients that have disconnected.
	write, heartbeat time.Duration
	// shutdown is the grace period for open requests when the server stops.
	shutdown time.Duration
}

func defaultLimits() limits {
	return limits{
		header: 5 * time.Second, request: 15 * time.Second, idle: time.Minute, write: 5 * time.Second, heartbeat: 10 * time.Second,
		shutdown: time.Second,
	}
}

// Server serves the page. Set the exported fields, call Open, register it as a sink of the pipeline, and call Run; Close stops it. Frame is
// called by the frame goroutine, all other methods by any goroutine.
type Server struct {
	// Address is host:port; port 0 selects a free one. An address other than loopback needs a Token, or a User and a Password.
	Address string
	// CertificateFile and KeyFile are PEM files; with them the server speaks TLS only.
	CertificateFile, KeyFile string
	// Token is the text of a token file, see access.ParseTokens; it, or User and Password, are the credentials. Without them everyone on this
	// machine has access.
	Token          string
	User, Password string
	// Directory stores the sessions ended by a logout, so that a restart does not revive them; empty disables it.
	Directory string
	// Samples is the directory of the frames for labelling.
	Samples string

	// Source provides the status.
	Source Source
	// History provides counts over time; nil disables it.
	History History
	// Zones stores what is drawn on the page. With nil the page only shows the YAML.
	Zones Zones
	// Cameras adds and sets cameras; nil if that is not possible.
	Cameras Cameras
	// Notifications are those of browsers; nil if there are none.
	Notifications Notifications
	// Events are the stored events; nil if none are stored.
	Events Events
	// Units returns the newest access units of a camera, nil if it has none, for live video. Without the function all cameras are shown as
	// images.
	Units func(camera string) *capture.Ring
	// Audit records changes; nil for none.
	Audit *audit.Log
	// Profiling serves /debug/pprof/.
	Profiling bool
	// FrameRate is the maximum frame rate per camera, less with many cameras; ImageWidth is the maximum image width in pixels.
	FrameRate, ImageWidth int
	// Viewers is the maximum number of open streams.
	Viewers int
	// MaxBytes bounds the memory of what clients requested and have not read; DefaultMaxBytes if 0.
	MaxBytes int64
	Logger   *slog.Logger

	limits limits // changed by tests only

	// Set by Open.
	at     net.Addr // that it listens on
	http   *http.Server
	access access.Control
	feed   live.Feed
	memory inflight.Budget // of requests and responses

	mutex    sync.Mutex
	listener net.Listener // replaced by Run when it fails

	recent    cachedStatus
	writable  writable
	searching sync.Mutex // held by a search for cameras
	closed    sync.Once
}

var _ pipeline.Sink = (*Server)(nil)

// Frame implements pipeline.Sink.
func (s *Server) Frame(in *pipeline.Result) { s.feed.Frame(in) }

func (s *Server) secrets() (access.Secrets, error) {
	tokens, err := access.ParseTokens(s.Token)
	return access.Secrets{Tokens: tokens, User: s.User, Password: s.Password}, err
}

// Check returns the error that Open would return, except for an address in use, without opening anything.
func (s *Server) Check() error {
	_, _, err := s.check()
	return err
}

// check resolves the address and loads the certificate.
func (s *Server) check() (address *net.TCPAddr, encryption *tls.Config, err error) {
	if address, err = net.ResolveTCPAddr("tcp", s.Address); err != nil {
		return nil, nil, fmt.Errorf("web: address %q: %w", s.Address, err)
	}
	secrets, err := s.secrets()
	if err == nil {
		err = secrets.Check(s.Address, address.IP.IsLoopback())
	}
	if err != nil {
		return nil, nil, fmt.Errorf("web: %w", err)
	}
	encryption, err = s.encryption()
	return address, encryption, err
}

// Open checks the fields and listens on the address.
func (s *Server) Open() error {
	if s.Source == nil {
		return errors.New("web: needs a source")
	}
	if s.Logger == nil {
		s.Logger = slog.Default()
	}
	if s.limits == (limits{}) {
		s.limits = defaultLimits()
	}
	setDefault(&s.FrameRate, DefaultFrameRate)
	setDefault(&s.ImageWidth, DefaultImageWidth)
	setDefault(&s.Viewers, DefaultViewers)
	s.memory.Max, s.memory.Setting = cmp.Or(s.MaxBytes, DefaultMaxBytes), "web.memory_mb"
	address, encryption, err := s.check()
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", address.String())
	if err != nil {
		return fmt.Errorf("web: %w", err)
	}
	if encryption == nil && !address.IP.IsLoopback() {
		s.Logger.Warn("the web page is served without TLS: passwords and images can be read in transit; set a certificate and a key",
			"address", s.Address)
	}
	s.at = listener.Addr()
	s.setListener(listener)
	s.access.Secrets, _ = s.secrets() // check has read them
	s.access.Encrypted, s.access.Logger = encryption != nil, s.Logger
	s.access.Port = s.at.(*net.TCPAddr).Port
	if s.Directory != "" {
		s.access.File = filepath.Join(s.Directory, "web-logouts")
	}
	if err := s.access.Open(); err != nil {
		return errors.Join(fmt.Errorf("web: %w", err), listener.Close())
	}
	s.feed.FrameRate, s.feed.ImageWidth, s.feed.Viewers = s.FrameRate, s.ImageWidth, s.Viewers
	s.feed.Write, s.feed.Heartbeat, s.feed.Logger = s.limits.write, s.limits.heartbeat, s.Logger
	s.feed.Known, s.feed.Memory, s.feed.Units = s.known, &s.memory, s.Units
	if s.Units == nil {
		s.feed.Units = func(string) *capture.Ring { return nil }
	}
	s.feed.Open()
	s.http = &http.Server{
		Handler: s.handler(), TLSConfig: encryption,
		ReadHeaderTimeout: s.limits.header, ReadTimeout: s.limits.request, WriteTimeout: s.limits.request, IdleTimeout: s.limits.idle,
		MaxHeaderBytes: headerBytes, ConnContext: access.WithConnection, ErrorLog: slogLogger(s.Logger),
	}
	return nil
}

// setListener sets what Run accepts connections from.
func (s *Server) setListener(listener net.Listener) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.listener = &access.Listener{Listener: listener, Anonymous: anonymous, PerPrefix: perPrefix, Authenticated: authenticated}
}

func setDefault(value *int, otherwise int) {
	if *value == 0 {
		*value = otherwise
	}
}

// slogLogger logs net/http's errors about clients at debug level.
func slogLogger(logger *slog.Logger) *log.Logger {
	return slog.NewLogLogger(logger.Handler(), slog.LevelDebug)
}

func (s *Server) encryption() (*tls.Config, error) {
	if s.CertificateFile == "" && s.KeyFile == "" {
		return nil, nil
	}
	if s.CertificateFile == "" || s.KeyFile == "" {
		return nil, errors.New("web: certificate and key must be set together")
	}
	pair, err := boundedfile.KeyPair(s.CertificateFile, s.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("web: certificate %s: %w", s.CertificateFile, err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, nil
}

// URL returns the address of the page.
func (s *Server) URL() string {
	scheme := "http"
	if s.access.Encrypted {
		scheme = "https"
	}
	return scheme + "://" + s.at.String() + "/"
}

// Run serves until ctx ends. Streams end immediately, open requests get a second. When the listener fails, it listens again with growing
// pauses: the frame loop goes on without the page.
func (s *Server) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.http.BaseContext = func(net.Listener) context.Context { return ctx }
	var parts sync.WaitGroup
	parts.Go(func() { s.feed.Run(ctx) })
	parts.Go(func() {
		<-ctx.Done()
		stop, done := context.WithTimeout(context.Background(), s.limits.shutdown)
		defer done()
		if s.http.Shutdown(stop) != nil {
			_ = s.http.Close()
		}
	})
	for err := s.serve(); !errors.Is(err, http.ErrServerClosed) && ctx.Err() == nil; err = s.serve() {
		s.Logger.Error("web page interrupted", "error", err)
		if !s.listenAgain(ctx) {
			break
		}
		s.Logger.Info("web page served again")
	}
	cancel()
	parts.Wait()
	s.feed.Stop()
	return nil
}

// serve serves until the listener fails; the error is http.ErrServerClosed after Close and the end of Run.
func (s *Server) serve() error {
	s.mutex.Lock()
	listener := s.listener
	s.mutex.Unlock()
	if s.access.Encrypted {
		return s.http.ServeTLS(listener, "", "")
	}
	return s.http.Serve(listener)
}

// listenAgain listens on the same address. It tries until ctx ends; then it returns false.
func (s *Server) listenAgain(ctx context.Context) bool {
	pauses := backoff.Exponential{Min: time.Second, Max: time.Minute}
	for failures := 0; ; failures++ {
		listener, err := net.Listen("tcp", s.at.String())
		if err == nil {
			s.setListener(listener)
			return true
		}
		s.Logger.Warn("web page not served", "error", err)
		select {
		case <-ctx.Done():
			return false
		case <-time.After(pauses.After(failures)):
		}
	}
}

// Close stops listening and ends Run. It is idempotent and safe on a server that was never opened.
func (s *Server) Close() error {
	s.closed.Do(func() {
		if s.http != nil {
			_ = s.http.Close()
		}
		s.mutex.Lock()
		defer s.mutex.Unlock()
		if s.listener != nil {
			_ = s.listener.Close()
		}
	})
	return nil
}

// Package serve implements the Open Inference Protocol (KServe v2) with this machine's engine, for clients of Triton Inference Server.
package serve

import (
	"cmp"
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/net/netutil"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/network"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/progress"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/kserve"
	"github.com/edge-infer/edge-infer/engine/kserve/server"
	"github.com/edge-infer/edge-infer/mqtt/credentials"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// Serve configures the server.
type Serve struct {
	Listen      []string // addresses for HTTP and gRPC
	Name        string   // model name; empty: by its file
	TokenFile   string
	Certificate string
	Key         string
	Delay       time.Duration // maximum time that a request waits for a batch
	Queue       int           // maximum number of waiting requests
	Connections int           // maximum per address
	Largest     int64         // maximum bytes of a request; 0: by the model's largest batch as JSON

	Release  string
	Config   *config.Config
	Logger   *slog.Logger
	Progress progress.Reporter
	// Started is called once the server listens, with names, types and shapes of the inputs, in which -1 is any size; may be nil.
	Started func(model, takes string, addresses []string)
}

// Flags adds the flags of the server.
func (s *Serve) Flags(flags *pflag.FlagSet) {
	flags.StringSliceVar(&s.Listen, "listen", []string{"127.0.0.1:8000", "127.0.0.1:8001"}, "addresses for HTTP and gRPC")
	flags.StringVar(&s.Name, "name", "", "model name for clients (default: by its file)")
	flags.StringVar(&s.TokenFile, "token-file", "",
		"file with the token that clients must send as Authorization: Bearer; required if other machines can connect")
	flags.StringVar(&s.Certificate, "certificate", "", "PEM file of the certificate, for https and grpcs")
	flags.StringVar(&s.Key, "key", "", "PEM file of its key")
	flags.DurationVar(&s.Delay, "queue-delay", 0, "maximum time that a request waits for a batch; 0: batch only requests that wait anyway")
	flags.IntVar(&s.Queue, "queue", 64, "maximum number of waiting requests; more are refused")
	flags.IntVar(&s.Connections, "connections", 64, "maximum connections per address; more wait")
	flags.Int64Var(&s.Largest, "max-request", 0, "maximum bytes of a request; 0: by the largest batch as JSON")
}

// Check validates the settings.
func (s *Serve) Check() error {
	switch {
	case len(s.Listen) == 0:
		return config.Usagef("--listen needs an address")
	case (s.Certificate == "") != (s.Key == ""):
		return config.Usagef("--certificate and --key: one needs the other")
	case s.Delay < 0 || s.Delay > time.Second:
		return config.Usagef("--queue-delay must be 0 to 1s")
	case s.Queue < 1 || s.Queue > 4096 || s.Connections < 1 || s.Connections > 4096:
		return config.Usagef("--queue and --connections must be 1 to 4096")
	case s.Largest < 0 || s.Largest > 4<<30:
		return config.Usagef("--max-request must be 0 to 4294967296")
	case s.Name != "" && !kserve.IsModelName(s.Name):
		return config.Usagef("--name %q must be letters, digits, dots, dashes and underscores", s.Name)
	}
	for _, address := range s.Listen {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return config.Usagef("--listen %q must be host:port", address)
		}
		if s.TokenFile == "" && host != "localhost" && !net.ParseIP(host).IsLoopback() {
			return config.Usagef("--listen %s is reachable from other machines: set --token-file, or listen on 127.0.0.1", address)
		}
	}
	return nil
}

const (
	defaultBatch  = 8
	headTimeout   = 10 * time.Second
	bodyTimeout   = time.Minute // to read a request or write a response
	idleTimeout   = 2 * time.Minute
	stopTimeout   = 5 * time.Second
	streams       = 64 // concurrent requests per connection
	streamBuffer  = 4 << 20
	connectionBuf = 16 << 20
)

// Run opens the model and answers until ctx ends.
func (s *Serve) Run(ctx context.Context) (err error) {
	token, err := credentials.ReadSecret("", s.TokenFile)
	if err == nil && s.TokenFile != "" && strings.TrimSpace(token) == "" {
		err = fmt.Errorf("token: %s is empty (write one into it: openssl rand -hex 16)", s.TokenFile)
	}
	if err != nil {
		return err
	}
	options := network.Options(s.Config, s.Config.Detect.Confidence, s.Logger)
	options.Build = network.PlanBuilder{Progress: s.Progress}.Build
	options.Slots = 1
	if s.Config.Engine.Batch == 0 {
		options.MaxBatch = defaultBatch
	}
	raw, err := predict.OpenRaw(ctx, options)
	if err != nil {
		return err
	}
	model, err := newModel(raw, engine.Size{Width: options.Width, Height: options.Height}, s.name(), s.Queue, s.Delay)
	if err != nil {
		return errors.Join(err, raw.Close())
	}
	defer func() { err = errors.Join(err, model.close()) }()
	handler := &server.Server{
		Models: map[string]server.Model{model.name: model},
		About: kserve.ServerMetadata{
			Name: "edge-infer", Version: s.Release, Extensions: []string{"binary_tensor_data", "model_configuration", "statistics"},
		},
		MaxBytes: s.Largest,
	}
	if handler.MaxBytes == 0 {
		handler.MaxBytes = model.largest()
	}
	if s.TokenFile != "" {
		handler.Allow = allow(strings.TrimSpace(token))
	}
	return s.answer(ctx, handler, func(addresses []string) {
		if s.Started != nil {
			s.Started(model.name, model.takes(), addresses)
		}
	})
}

// name returns the model name for clients.
func (s *Serve) name() string {
	return cmp.Or(s.Name, kserve.ModelName(cmp.Or(s.Config.Model.Path, predict.Demo)))
}

// allow compares tokens in constant time.
func allow(token string) func(*http.Request) bool {
	want := []byte("Bearer " + token)
	return func(r *http.Request) bool {
		return subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), want) == 1
	}
}

// answer serves until ctx ends, then waits for requests in progress. It calls started with the addresses.
func (s *Serve) answer(ctx context.Context, handler http.Handler, started func(addresses []string)) error {
	tls := s.Certificate != ""
	h := &http.Server{
		Handler: handler, Protocols: server.Protocols(tls), ReadHeaderTimeout: headTimeout, ReadTimeout: bodyTimeout, WriteTimeout: bodyTimeout,
		IdleTimeout: idleTimeout, MaxHeaderBytes: 64 << 10, ErrorLog: slog.NewLogLogger(s.Logger.Handler(), slog.LevelDebug),
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: streams, MaxReceiveBufferPerStream: streamBuffer, MaxReceiveBufferPerConnection: connectionBuf,
			MaxReadFrameSize: 1 << 20, PingTimeout: headTimeout, SendPingTimeout: idleTimeout,
		},
	}
	var listeners []net.Listener
	var addresses []string
	for _, address := range s.Listen {
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
		if err != nil {
			for _, open := range listeners {
				err = errors.Join(err, open.Close())
			}
			return fmt.Errorf("serve: %w", err)
		}
		listeners = append(listeners, netutil.LimitListener(listener, s.Connections))
		addresses = append(addresses, listener.Addr().String())
	}
	ended := make(chan error, len(listeners))
	for _, listener := range listeners {
		go func() {
			if tls {
				ended <- h.ServeTLS(listener, s.Certificate, s.Key)
			} else {
				ended <- h.Serve(listener)
			}
		}()
	}
	started(addresses)
	var failed error
	running := len(listeners)
	select {
	case <-ctx.Done():
	case failed = <-ended:
		running--
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	if h.Shutdown(stopping) != nil {
		_ = h.Close() // remaining clients are disconnected
	}
	for range running {
		<-ended
	}
	if errors.Is(failed, http.ErrServerClosed) {
		failed = nil
	}
	return failed
}

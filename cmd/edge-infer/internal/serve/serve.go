// Package serve implements the Open Inference Protocol (KServe v2) with this machine's engine, for clients of Triton Inference Server.
package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/access"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/network"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/process"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/progress"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/terminal"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/kserve"
	"github.com/edge-infer/edge-infer/engine/kserve/server"
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
	Connections int           // maximum per address of Listen
	InFlight    int64         // maximum bytes of requests that are being read or answered; at least one request fits
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
	flags.IntVar(&s.Connections, "connections", 64, "maximum connections per address; a new one replaces the oldest without a valid request")
	flags.Int64Var(&s.InFlight, "max-in-flight", 256<<20, "maximum bytes of all requests at a time; more are refused")
	flags.Int64Var(&s.Largest, "max-request", 0, "maximum bytes of a request; 0: the largest batch, or one image as JSON")
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
	case s.InFlight < 0 || s.InFlight > 64<<30:
		return config.Usagef("--max-in-flight must be 0 to 68719476736")
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
	c := &credentials{tokenFile: s.TokenFile, certificate: s.Certificate, key: s.Key, logger: s.Logger}
	if err := c.Load(); err != nil {
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
		MaxBytes: s.Largest, Allow: c.allow,
	}
	if handler.MaxBytes == 0 {
		handler.MaxBytes = model.largest()
	}
	handler.Budget.Max = max(s.InFlight, 2*handler.MaxBytes) // a body may be copied to grow
	handler.Budget.Setting = "serve --max-in-flight"
	process.LimitMemory(handler.Budget.Max*3/2 + besidesRequests)
	return s.answer(ctx, handler, c, func(addresses []string) {
		if s.Started != nil {
			s.Started(model.name, model.takes(), addresses)
		}
	})
}

// besidesRequests is the memory of Go, in bytes, that is not a request's.
const besidesRequests = 64 << 20

// name returns the model name for clients.
func (s *Serve) name() string {
	return cmp.Or(s.Name, kserve.ModelName(cmp.Or(s.Config.Model.Path, predict.Demo)))
}

// reload reads the token file and the certificate again.
func (s *Serve) reload(c *credentials) {
	if err := c.Load(); err != nil {
		s.Logger.Error("token and certificate not changed", "error", err)
		return
	}
	s.Logger.Info("token and certificate read again")
}

// answer serves until ctx ends, then waits for requests in progress. It calls started with the addresses.
func (s *Serve) answer(ctx context.Context, handler *server.Server, c *credentials, started func(addresses []string)) error {
	encryption := c.tls()
	h := &http.Server{
		Handler: c.control.Load().Protected(withMetrics(handler, c)), Protocols: server.Protocols(encryption != nil), TLSConfig: encryption,
		ConnContext: access.WithConnection, ReadHeaderTimeout: headTimeout, ReadTimeout: bodyTimeout, WriteTimeout: bodyTimeout,
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
		listeners = append(listeners, &access.Listener{
			Listener: listener, Anonymous: s.Connections, PerPrefix: max(s.Connections/2, 1), Authenticated: s.Connections,
		})
		addresses = append(addresses, listener.Addr().String())
	}
	ended := make(chan error, len(listeners))
	for _, listener := range listeners {
		go func() {
			if encryption != nil {
				ended <- h.ServeTLS(listener, "", "")
			} else {
				ended <- h.Serve(listener)
			}
		}()
	}
	hangup := make(chan os.Signal, 1)
	if !terminal.Interactive() { // there it means that the window has been closed
		signal.Notify(hangup, syscall.SIGHUP)
		defer signal.Stop(hangup)
	}
	started(addresses)
	var failed error
	running := len(listeners)
	for serving := true; serving; {
		select {
		case <-ctx.Done():
			serving = false
		case failed = <-ended:
			running--
			serving = false
		case <-hangup:
			s.reload(c)
		}
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

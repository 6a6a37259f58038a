// Package server serves models over the Open Inference Protocol, version 2, by HTTP and gRPC on one port. It validates and translates;
// execution and batching belong to the model.
package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/edge-infer/edge-infer/engine/kserve"
	"github.com/edge-infer/edge-infer/internal/inflight"
)

// Model is a model that is served. Its methods may be called from any goroutine.
type Model interface {
	Metadata() kserve.ModelMetadata
	Config() kserve.ModelConfig
	Statistics() kserve.ModelStatistics
	// Ready returns why the model accepts no requests, nil if it does.
	Ready() error
	// Infer runs the model and passes the response to write, which does not keep it. The request is valid until Infer returns. An error that
	// is not a *kserve.Status is reported as an internal error.
	Infer(ctx context.Context, r *kserve.InferRequest, write func(*kserve.InferResponse) error) error
}

// Server is an http.Handler. Its fields are set before it serves.
type Server struct {
	Models map[string]Model
	About  kserve.ServerMetadata
	// MaxBytes bounds the body of a request.
	MaxBytes int64
	// Budget bounds the bytes of all requests together.
	Budget inflight.Budget
	// Allow reports whether a request may be answered; nil allows all. Requests for liveness and readiness are always answered.
	Allow func(*http.Request) bool
	// Ready returns why the server is not ready, nil if it is; a nil function means always ready.
	Ready func() error
}

// Protocols returns the protocols that an http.Server needs for this handler.
func Protocols(tls bool) *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP1(true)
	p.SetHTTP2(tls)
	p.SetUnencryptedHTTP2(!tls)
	return p
}

// DefaultMaxBytes holds 16 images of 1280x1280 in 32-bit numbers.
const DefaultMaxBytes = 320 << 20

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	limit := s.MaxBytes
	if limit == 0 {
		limit = DefaultMaxBytes
	}
	r.Body = http.MaxBytesReader(w, r.Body, limit)
	memory := &inflight.Lease{Budget: &s.Budget}
	defer memory.End()
	if strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc") {
		s.serveGRPC(w, r, limit, memory)
		return
	}
	s.serveREST(w, r, memory)
}

func (s *Server) ready() error {
	if s.Ready != nil {
		if err := s.Ready(); err != nil {
			return err
		}
	}
	for _, model := range s.Models {
		if err := model.Ready(); err != nil {
			return err
		}
	}
	return nil
}

// model returns a model by name and version; the version is one of its metadata, or empty.
func (s *Server) model(name, version string) (Model, error) {
	m, ok := s.Models[name]
	if !ok {
		return nil, kserve.Statusf(kserve.NotFound, "unknown model %.64q, there is %s", name, s.names())
	}
	if version != "" && version != m.Metadata().Versions[0] {
		return nil, kserve.Statusf(kserve.NotFound, "model %.64q has no version %.32q, there is %s", name, version, m.Metadata().Versions[0])
	}
	return m, nil
}

func (s *Server) names() string {
	names := make([]string, 0, len(s.Models))
	for name := range s.Models {
		names = append(names, strconv.Quote(name))
	}
	return strings.Join(names, ", ")
}

// Parts of the protocol's extensions that need a server whose models and settings change while it runs.
var (
	errRepository = kserve.Statusf(kserve.Unimplemented,
		"models are neither loaded nor unloaded while this server runs: start it with the models")
	errTrace   = kserve.Statusf(kserve.Unimplemented, "this server writes no traces: its metrics and the model's stats have the times")
	errLogging = kserve.Statusf(kserve.Unimplemented, "log settings do not change while this server runs: start it with --log")
)

// check rejects requests with features that this server does not support.
func check(r *kserve.InferRequest) error {
	for i := range r.Outputs {
		if r.Outputs[i].Classes != 0 {
			return kserve.Statusf(kserve.Unimplemented, "%.64q with the parameter classification: this server returns whole outputs, sort them "+
				"yourself (the class names are the parameter names of the model's config)", r.Outputs[i].Name)
		}
	}
	for _, list := range [][]kserve.Tensor{r.Inputs, r.Outputs} {
		for i := range list {
			if list[i].Region.Name != "" {
				return kserve.Statusf(kserve.Unimplemented, "%.64q is in shared memory, which this server does not have: send the tensor itself",
					list[i].Name)
			}
		}
	}
	return nil
}

// wanted removes outputs from a response that were not requested.
func wanted(r *kserve.InferRequest, a *kserve.InferResponse) error {
	if len(r.Outputs) == 0 {
		return nil
	}
	var kept []kserve.Tensor
	for i := range r.Outputs {
		found := false
		for k := range a.Outputs {
			if a.Outputs[k].Name == r.Outputs[i].Name {
				kept, found = append(kept, a.Outputs[k]), true
			}
		}
		if !found {
			return kserve.Statusf(kserve.InvalidArgument, "the model has no output %.64q", r.Outputs[i].Name)
		}
	}
	a.Outputs = kept
	return nil
}

// asStatus converts an error to a status for the client.
func asStatus(err error) *kserve.Status {
	var s *kserve.Status
	if errors.As(err, &s) {
		return s
	}
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return kserve.Statusf(kserve.ResourceExhausted, "the request has more than %d bytes", large.Limit)
	case errors.Is(err, context.DeadlineExceeded):
		return kserve.Statusf(kserve.DeadlineExceeded, "the request took too long")
	case errors.Is(err, context.Canceled):
		return kserve.Statusf(kserve.Cancelled, "the request was given up")
	}
	return kserve.NewStatus(kserve.Internal, err.Error())
}

// serveREST serves the protocol's HTTP paths.
func (s *Server) serveREST(w http.ResponseWriter, r *http.Request, memory *inflight.Lease) {
	path := strings.Split(strings.Trim(r.URL.EscapedPath(), "/"), "/")
	for i := range path {
		if plain, err := url.PathUnescape(path[i]); err == nil {
			path[i] = plain
		}
	}
	if path[0] != "v2" {
		fail(w, kserve.Statusf(kserve.NotFound, "no such path: the protocol's begin with /v2"))
		return
	}
	if len(path) == 3 && path[1] == "health" {
		var err error
		if path[2] == "ready" {
			err = s.ready()
		}
		health(w, err)
		return
	}
	if s.Allow != nil && !s.Allow(r) {
		w.Header().Set("WWW-Authenticate", "Bearer")
		fail(w, kserve.Statusf(kserve.Unauthenticated, "the token is missing or another one"))
		return
	}
	if err := s.rest(w, r, path[1:], memory); err != nil {
		fail(w, err)
	}
}

func health(w http.ResponseWriter, err error) {
	if err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
}

func fail(w http.ResponseWriter, err error) {
	status := asStatus(err)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status.Code.HTTP())
	_ = json.NewEncoder(w).Encode(map[string]string{"error": status.Message}) // the client may have disconnected
}

func write(w http.ResponseWriter, answer any) error {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer) // the client may have disconnected
	return nil
}

// rest serves paths below /v2/.
func (s *Server) rest(w http.ResponseWriter, r *http.Request, path []string, memory *inflight.Lease) error {
	switch {
	case len(path) == 0:
		return write(w, &s.About)
	case path[0] == "systemsharedmemory", path[0] == "cudasharedmemory":
		return kserve.Statusf(kserve.Unimplemented, "this server has no shared memory: send the tensors themselves")
	case path[0] == "repository" && len(path) == 2 && path[1] == "index":
		return write(w, s.index())
	case path[0] == "repository" && len(path) == 4 && path[1] == "models" && (path[3] == "load" || path[3] == "unload"):
		return errRepository
	case path[0] == "trace":
		return errTrace
	case path[0] == "logging":
		return errLogging
	case path[0] != "models" || len(path) < 2:
		return kserve.Statusf(kserve.NotFound, "no such path")
	case path[1] == "stats" && len(path) == 2:
		return write(w, map[string]any{"model_stats": s.statistics(nil)})
	}
	name, version, rest := path[1], "", path[2:]
	if len(rest) >= 2 && rest[0] == "versions" {
		version, rest = rest[1], rest[2:]
	}
	m, err := s.model(name, version)
	if err != nil {
		return err
	}
	switch strings.Join(rest, "/") {
	case "":
		metadata := m.Metadata()
		return write(w, &metadata)
	case "ready":
		health(w, m.Ready())
		return nil
	case "config":
		config := m.Config()
		return write(w, &config)
	case "stats":
		return write(w, map[string]any{"model_stats": s.statistics(m)})
	case "infer":
		return s.infer(w, r, m, memory)
	case "trace/setting":
		return errTrace
	}
	return kserve.Statusf(kserve.NotFound, "no such path")
}

// statistics returns those of one model, or of all if it is nil.
func (s *Server) statistics(of Model) []kserve.ModelStatistics {
	list := []kserve.ModelStatistics{}
	for _, m := range s.Models {
		if of == nil || m == of {
			list = append(list, m.Statistics())
		}
	}
	return list
}

type entry struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	State   string `json:"state"`
	Reason  string `json:"reason"`
}

func (s *Server) index() []entry {
	list := []entry{}
	for name, m := range s.Models {
		e := entry{Name: name, Version: m.Metadata().Versions[0], State: "READY"}
		if err := m.Ready(); err != nil {
			e.State, e.Reason = "UNAVAILABLE", err.Error()
		}
		list = append(list, e)
	}
	return list
}

// infer answers a request for a run over HTTP.
func (s *Server) infer(w http.ResponseWriter, r *http.Request, m Model, memory *inflight.Lease) error {
	if r.Method != http.MethodPost {
		return kserve.Statusf(kserve.InvalidArgument, "a request for a run is a POST")
	}
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return kserve.Statusf(kserve.Unimplemented, "compressed requests are not read: tensors gain nothing by it")
	}
	head := -1
	if text := r.Header.Get(kserve.HeaderLength); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return kserve.Statusf(kserve.InvalidArgument, "%s is %.32q", kserve.HeaderLength, text)
		}
		head = n
	}
	body, err := readBody(r, memory)
	if err != nil {
		return err
	}
	var request kserve.InferRequest
	if err := request.UnmarshalHTTP(body, head); err != nil {
		return kserve.Statusf(kserve.InvalidArgument, "%v", err)
	}
	if err := check(&request); err != nil {
		return err
	}
	return m.Infer(r.Context(), &request, func(a *kserve.InferResponse) error {
		if err := wanted(&request, a); err != nil {
			return err
		}
		a.ID = request.ID
		answer, head, err := a.MarshalHTTP(request.BinaryOutput)
		if err != nil {
			return kserve.Statusf(kserve.InvalidArgument, "%v", err)
		}
		w.Header().Set("Content-Type", "application/json")
		if head >= 0 {
			w.Header().Set("Content-Type", kserve.ContentType)
			w.Header().Set(kserve.HeaderLength, strconv.Itoa(head))
		}
		w.Header().Set("Content-Length", strconv.Itoa(len(answer)))
		_, _ = w.Write(answer) // the client may have disconnected
		return nil
	})
}

// readBody reads a body. It allocates memory for the announced length only after the first bytes have arrived.
func readBody(r *http.Request, memory *inflight.Lease) ([]byte, error) {
	const first = 64 << 10
	size := r.ContentLength
	if size < 0 || size > first {
		size = first
	}
	var body []byte
	for {
		if len(body) == cap(body) {
			longer := max(size+1, 2*int64(len(body)))
			if len(body) > 0 && r.ContentLength >= int64(len(body)) {
				longer = r.ContentLength + 1
			}
			if err := grow(memory, longer); err != nil {
				return nil, err
			}
			body = append(make([]byte, 0, longer), body...)
		}
		n, err := r.Body.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		if err == io.EOF {
			return body, nil
		}
		if err != nil {
			return nil, fmt.Errorf("body: %w", err)
		}
	}
}

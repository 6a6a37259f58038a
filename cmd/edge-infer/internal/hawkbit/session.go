package hawkbit

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/httperror"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/update"
	"github.com/edge-infer/edge-infer/mqtt/credentials"
)

const (
	requestTimeout = 30 * time.Second
	maxAnswer      = 1 << 20 // bytes
)

// session talks to one server.
type session struct {
	settings config.HawkBit
	base     *url.URL // resource of the device; nil without a server
	client   *http.Client
	failed   error // of the last turn
}

func newSession(settings config.HawkBit, device string) *session {
	s := &session{settings: settings}
	if settings.URL == "" {
		return s
	}
	if base, err := url.Parse(settings.URL); err == nil { // which the configuration has checked
		s.base = base.JoinPath("controller", "v1", url.PathEscape(device))
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.ResponseHeaderTimeout = requestTimeout
	s.client = &http.Client{Transport: &authorized{transport, s}}
	return s
}

func (s *session) close() {
	if s != nil && s.client != nil {
		s.client.CloseIdleConnections()
	}
}

// shown is the address of the server without what may be secret in it.
func (s *session) shown() string { return s.base.Scheme + "://" + s.base.Host }

// authorized adds the token to requests to the server, and to no other.
type authorized struct {
	*http.Transport

	session *session
}

// RoundTrip implements http.RoundTripper.
func (a *authorized) RoundTrip(request *http.Request) (*http.Response, error) {
	s := a.session
	if s.settings.TokenFile != "" && request.URL.Host == s.base.Host && request.URL.Scheme == s.base.Scheme {
		token, err := credentials.ReadSecret("", s.settings.TokenFile)
		if err != nil {
			return nil, fmt.Errorf("hawkbit.token_file: %w", err)
		}
		kind := "TargetToken "
		if s.settings.Gateway {
			kind = "GatewayToken "
		}
		request = request.Clone(request.Context())
		request.Header.Set("Authorization", kind+strings.TrimSpace(token))
	}
	return a.Transport.RoundTrip(request)
}

// job returns the job of an action.
func (s *session) job(from *url.URL, action *deployment) (*update.Job, error) {
	file, err := action.bundle()
	if err != nil {
		return nil, err
	}
	address, err := file.address(from)
	if err != nil {
		return nil, err
	}
	return &update.Job{
		Sender: update.HawkBit, ID: action.ID, From: address.String(), Contents: file.contents(), PlainHTTP: s.base.Scheme == "http",
		Transport: s.client.Transport,
	}, nil
}

// open requests what a link leads to.
func (s *session) open(ctx context.Context, from *url.URL, to *link, answer any) (*url.URL, error) {
	address, err := to.resolve(from)
	if err != nil {
		return nil, err
	}
	return s.get(ctx, address, answer)
}

// get requests an answer and returns the address that it came from.
func (s *session) get(ctx context.Context, from *url.URL, answer any) (*url.URL, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	response, err := s.do(ctx, http.MethodGet, from, http.NoBody)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	if err != nil {
		return nil, httperror.Reason(err, "the server")
	}
	if len(data) > maxAnswer {
		return nil, fmt.Errorf("an answer of more than %d bytes", maxAnswer)
	}
	return response.Request.URL, parse(data, answer)
}

// send sends a body as JSON.
func (s *session) send(ctx context.Context, method string, to *url.URL, body any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	response, err := s.do(ctx, method, to, bytes.NewReader(data))
	if err != nil {
		return err
	}
	return response.Body.Close()
}

// feedback reports on an action or a cancellation.
func (s *session) feedback(ctx context.Context, kind, id string, status feedbackStatus) error {
	body := map[string]any{"id": id, "status": status}
	return s.send(ctx, http.MethodPost, s.base.JoinPath(kind, url.PathEscape(id), "feedback"), body)
}

// statusError is an answer that is not a success.
type statusError struct {
	code   int
	remedy string
}

func (e *statusError) Error() string {
	return fmt.Sprintf("the server returned %d %s%s", e.code, http.StatusText(e.code), e.remedy)
}

// isFinal reports whether the same request would be refused again: the server has forgotten or closed the action.
func (e *statusError) isFinal() bool {
	return e.code == http.StatusNotFound || e.code == http.StatusGone || e.code == http.StatusBadRequest || e.code == http.StatusConflict
}

// do performs a request. The error is a statusError if the answer is none of success.
func (s *session) do(ctx context.Context, method string, to *url.URL, body io.Reader) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, to.String(), body)
	if err != nil {
		return nil, httperror.Reason(err, "the server")
	}
	request.Header.Set("Accept", "application/hal+json, application/json")
	if method != http.MethodGet {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := s.client.Do(request)
	if err != nil {
		return nil, httperror.Reason(err, "the server")
	}
	if response.StatusCode < 200 || response.StatusCode > 299 {
		_ = response.Body.Close() // discarded
		failed := &statusError{code: response.StatusCode}
		if failed.code == http.StatusUnauthorized || failed.code == http.StatusForbidden {
			failed.remedy = " (the token of hawkbit.token_file is not that of this device; hawkbit.gateway: true for a gateway's)"
		}
		return nil, failed
	}
	return response, nil
}

// Probe polls the server once and does nothing of what it asks for.
func Probe(ctx context.Context, settings config.HawkBit, device string) error {
	s := newSession(settings, device)
	defer s.close()
	_, err := s.get(ctx, s.base, &resource{})
	return err
}

package triton_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/enginetest"
	"github.com/edge-infer/edge-infer/engine/kserve"
	"github.com/edge-infer/edge-infer/engine/kserve/kservetest"
	"github.com/edge-infer/edge-infer/engine/triton"
)

// image is one of a single colour.
func img() []engine.Image {
	return []engine.Image{{Data: make([]byte, 96*64), Width: 96, Height: 64, Stride: 96, Format: engine.GRAY8}}
}

// infer does one request.
func infer(e *triton.Engine) (*engine.Result, error) {
	if err := e.Submit(0, img()); err != nil {
		return nil, err
	}
	return e.Wait(0)
}

// network are the options of the test network with time enough for every request.
func network(t testing.TB) engine.Options {
	o := enginetest.Network(t, "image")
	o.Remote.Timeout = patience
	return o
}

// opened opens an engine on servers, with that time for a request.
func opened(t *testing.T, timeout time.Duration, servers ...*kservetest.Server) *triton.Engine {
	o := network(t)
	o.Remote.Timeout = timeout
	e, err := at(t.Context(), "grpc", o, servers...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	requireHealthy(t, e, len(servers))
	return e
}

// requireHealthy waits until so many servers are healthy.
func requireHealthy(t testing.TB, e *triton.Engine, servers int) {
	t.Helper()
	require.Eventually(t, func() bool {
		healthy := 0
		for _, s := range e.Status().Servers {
			if s.Healthy {
				healthy++
			}
		}
		return healthy == servers
	}, patience, 5*time.Millisecond, "%+v", e.Status())
}

// enough is a time in which a server that is healthy answers on a busy machine, where tests want to see requests end without an answer.
const enough = 5 * time.Second

func TestAServerIsKilledAndComesBack(t *testing.T) {
	s := serve(t, network(t), nil)
	e := opened(t, enough, s)
	_, err := infer(e)
	require.NoError(t, err)
	s.Stop()
	_, err = infer(e)
	require.ErrorIs(t, err, engine.ErrUnavailable)
	require.ErrorContains(t, err, "triton wait: no server answers: "+s.Address+": ")
	require.False(t, e.Healthy())
	_, err = infer(e)
	require.ErrorIs(t, err, engine.ErrUnavailable, "at once: nothing is sent to a server that is away")
	s.Start(t)
	requireHealthy(t, e, 1)
	_, err = infer(e)
	require.NoError(t, err)
	require.EqualValues(t, 1, e.Status().Servers[0].Suspensions)
}

// A process that is stopped takes connections and never answers.
func TestAServerHangs(t *testing.T) {
	s := serve(t, network(t), nil)
	e := opened(t, 300*time.Millisecond, s)
	s.Hang.Store(true)
	_, err := infer(e)
	require.ErrorIs(t, err, engine.ErrUnavailable)
	require.ErrorContains(t, err, "no answer within 300ms")
	s.Hang.Store(false)
	requireHealthy(t, e, 1)
}

// With another server that is healthy, no request is lost.
func TestOneOfTwoServersGoes(t *testing.T) {
	for name, fault := range map[string]struct{ begin, end func(*kservetest.Server) }{
		"killed": {func(s *kservetest.Server) { s.Stop() }, func(s *kservetest.Server) { s.Start(t) }},
		"stopped": {
			func(s *kservetest.Server) { s.Hang.Store(true) }, func(s *kservetest.Server) { s.Hang.Store(false) },
		},
		"not ready": {
			func(s *kservetest.Server) {
				s.Model.Unready.Store(true)
				s.Model.SetFault(func(*kserve.InferRequest, *kserve.InferResponse) error {
					return kserve.Statusf(kserve.Unavailable, "Request for unknown model: 'net' is not ready")
				})
			}, func(s *kservetest.Server) { s.Model.Unready.Store(false); s.Model.SetFault(nil) },
		},
		"without data": {
			func(s *kservetest.Server) {
				s.Model.SetFault(func(_ *kserve.InferRequest, a *kserve.InferResponse) error {
					a.Outputs[0].Data = nil
					return nil
				})
			}, func(s *kservetest.Server) { s.Model.SetFault(nil) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			first, second := serve(t, network(t), nil), serve(t, network(t), nil)
			e := opened(t, enough, first, second)
			for range 10 {
				_, err := infer(e)
				require.NoError(t, err)
			}
			fault.begin(first)
			for range 20 {
				_, err := infer(e)
				require.NoError(t, err)
			}
			requireHealthy(t, e, 1)
			fault.end(first)
			requireHealthy(t, e, 2)
		})
	}
}

// Servers share the work: the one with less to do gets the next request.
func TestTheLeastLoadedServerIsAsked(t *testing.T) {
	first, second := serve(t, network(t), nil), serve(t, network(t), nil)
	held := make(chan struct{})
	e := opened(t, patience, first, second)
	hold := func(*kserve.InferRequest, *kserve.InferResponse) error {
		<-held
		return nil
	}
	first.Model.SetFault(hold)
	second.Model.SetFault(hold)
	require.NoError(t, e.Submit(0, img()))
	require.NoError(t, e.Submit(1, img()))
	before := first.Model.Inferred.Load() + second.Model.Inferred.Load()
	close(held)
	for slot := range 2 {
		_, err := e.Wait(slot)
		require.NoError(t, err)
	}
	status := e.Status().Servers
	require.EqualValues(t, 2, first.Model.Inferred.Load()+second.Model.Inferred.Load()-before)
	require.EqualValues(t, 1, status[0].Requests)
	require.EqualValues(t, 1, status[1].Requests)
}

// A server that is slower is asked now and then all the same: it may have become faster, or ill.
func TestTheSlowServerIsAskedNowAndThen(t *testing.T) {
	quick, slow := serve(t, network(t), nil), serve(t, network(t), nil)
	e := opened(t, patience, quick, slow)
	slow.Model.SetFault(func(*kserve.InferRequest, *kserve.InferResponse) error {
		time.Sleep(50 * time.Millisecond)
		return nil
	})
	for range 40 {
		_, err := infer(e)
		require.NoError(t, err)
	}
	status := e.Status().Servers
	require.GreaterOrEqual(t, status[1].Requests, uint64(4), status)
	require.EqualValues(t, 40, status[0].Requests+status[1].Requests)
}

// What a server answers that does not fit its own description is an error, never numbers.
func TestWrongAnswers(t *testing.T) {
	s := serve(t, network(t), nil)
	e := opened(t, enough, s)
	for want, fault := range map[string]func(a *kserve.InferResponse){
		`tensor "output0": 0 bytes instead of 1152 for FP32 [1 3 8 12]`: func(a *kserve.InferResponse) {
			a.Outputs[0].Data = nil
		},
		`the server sent output "output0" as FP32 [1 3 8 11], the model declares`: func(a *kserve.InferResponse) {
			a.Outputs[0].Shape = []int64{1, 3, 8, 11}
		},
		`the server sent output "output0" as FP32 [2 3 8 12], the model declares`: func(a *kserve.InferResponse) {
			a.Outputs[0].Shape = []int64{2, 3, 8, 12}
		},
		`the server sent output "output0" as INT32 [1 3 8 12], the model declares FP32 `: func(a *kserve.InferResponse) {
			a.Outputs[0].Datatype = "INT32"
		},
		`output "output0" is missing in the server's answer`: func(a *kserve.InferResponse) {
			a.Outputs[0].Name = "other"
		},
		`the server sent output "output0" as FP32 [], the model declares`: func(a *kserve.InferResponse) {
			a.Outputs[0].Shape = nil
		},
	} {
		s.Model.SetFault(func(_ *kserve.InferRequest, a *kserve.InferResponse) error {
			a.Outputs = append([]kserve.Tensor(nil), a.Outputs...)
			fault(a)
			return nil
		})
		_, err := infer(e)
		require.ErrorIs(t, err, engine.ErrShape, want)
		require.ErrorContains(t, err, want)
		s.Model.SetFault(nil)
		requireHealthy(t, e, 1)
	}
}

// A server that has too much to do is no server that is away.
func TestBackPressureSuspendsNothing(t *testing.T) {
	s := serve(t, network(t), nil)
	e := opened(t, enough, s)
	s.Model.SetFault(func(*kserve.InferRequest, *kserve.InferResponse) error {
		return kserve.Statusf(kserve.Unavailable, "[request id: <id_unknown>] Exceeds maximum queue size")
	})
	_, err := infer(e)
	require.ErrorIs(t, err, engine.ErrUnavailable)
	require.ErrorContains(t, err, "Exceeds maximum queue size")
	require.True(t, e.Healthy())
	s.Model.SetFault(nil)
	_, err = infer(e)
	require.NoError(t, err)
}

// Retries stay a small part of the requests, however many fail.
func TestRetriesHaveABudget(t *testing.T) {
	first, second := serve(t, network(t), nil), serve(t, network(t), nil)
	e := opened(t, enough, first, second)
	for _, s := range []*kservetest.Server{first, second} {
		s.Model.SetFault(func(*kserve.InferRequest, *kserve.InferResponse) error {
			return kserve.Statusf(kserve.ResourceExhausted, "too much to do")
		})
	}
	const requests = 100
	for range requests {
		_, err := infer(e)
		require.ErrorIs(t, err, engine.ErrUnavailable)
	}
	require.LessOrEqual(t, e.Status().Retries, uint64(10+requests/10))
	require.GreaterOrEqual(t, e.Status().Retries, uint64(10))
}

// Another version with the same inputs and outputs is used as if nothing had been; one with others is not used at all.
func TestTheVersionIsSwapped(t *testing.T) {
	s := serve(t, network(t), nil)
	e := opened(t, enough, s)
	var looks atomic.Int64
	s.Model.Redescribe("2", func(*kserve.ModelMetadata) { looks.Add(1) })
	_, err := infer(e)
	require.NoError(t, err)
	require.Equal(t, "2", e.Status().Servers[0].Version)
	require.Eventually(t, func() bool { return looks.Load() > 0 }, patience, time.Millisecond)

	s.Model.Redescribe("3", func(d *kserve.ModelMetadata) { d.Outputs[0].Name = "boxes" })
	_, err = infer(e) // the answer itself still fits, if no look at the server comes before it
	if err != nil {
		require.ErrorContains(t, err, "the server's model has changed: its outputs are")
	}
	requireHealthy(t, e, 0)
	_, err = infer(e)
	require.ErrorIs(t, err, engine.ErrUnavailable)
	require.ErrorContains(t, err, "the server's model has changed: its outputs are")

	s.Model.Redescribe("2", nil)
	requireHealthy(t, e, 1)
}

func TestOpeningSaysWhatIsWrong(t *testing.T) {
	s := serve(t, network(t), nil)
	away := serve(t, network(t), nil)
	away.Stop()
	open := func(addresses string, change func(*engine.Options)) error {
		o := network(t)
		if change != nil {
			change(&o)
		}
		e, err := triton.Open(t.Context(), addresses, o, quiet)
		if err == nil {
			assert.NoError(t, e.Close())
		}
		return err
	}
	err := open("grpc://"+s.Address+"/other", nil)
	require.ErrorIs(t, err, engine.ErrUnavailable)
	require.EqualError(t, err, "triton open: no server runs the model: "+s.Address+`: unknown model "other", there is "net" `+
		"(the path of the address must name a model in the server's repository)")
	err = open("http://"+away.Address+"/net", nil)
	require.ErrorIs(t, err, engine.ErrUnavailable)
	require.ErrorContains(t, err, "connection refused "+
		"(check that the server runs and that the port is right (Triton: 8001 for gRPC, 8000 for HTTP))")
	require.NoError(t, open("grpc://"+away.Address+"/net,grpc://"+s.Address+"/net", nil), "one of two is enough")
	require.ErrorContains(t, open("grpc://"+s.Address+"/net", func(o *engine.Options) { o.Precision = engine.FP16 }),
		"the precision of a server's model is fixed, fp16 cannot be selected (leave the precision at auto)")
	require.ErrorContains(t, open("grpc://"+s.Address+"/net", func(o *engine.Options) {
		o.Remote.Authorization = func() (string, error) { return "", errors.New("no such file") }
	}), "cannot read the server's token: no such file")
	require.ErrorContains(t, open("grpc://example.org/net", func(o *engine.Options) {
		o.Remote.Authorization = func() (string, error) { return "Bearer x", nil }
	}), "the token for example.org:8001 would be sent unencrypted (use grpcs:// or https://)")
}

// Servers were seen that repeat a request of megabytes in their error, and that answer a request in binary with numbers in JSON.
func TestServersThatAreNotTriton(t *testing.T) {
	s := serve(t, network(t), nil)
	text := false
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !strings.HasSuffix(r.URL.Path, "/infer"):
			s.Server.ServeHTTP(w, r)
		case text:
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = w.Write([]byte(strings.Repeat("tensor contents\n", 1<<20)))
		default:
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"model_name":"net","model_version":"1","outputs":[{"name":"output0","datatype":"FP32","shape":[1,3,8,12],"data":[` +
				strings.TrimSuffix(strings.Repeat("0.5,", 3*8*12), ",") + `]}]}`))
		}
	}))
	defer front.Close()
	o := network(t)
	e, err := triton.Open(t.Context(), front.URL+"/net", o, quiet)
	require.NoError(t, err)
	defer e.Close()
	result, err := infer(e)
	require.NoError(t, err)
	require.InDelta(t, 0.5, result.Outputs[0].Float32s()[287], 1e-9)
	text = true
	_, err = infer(e)
	require.ErrorIs(t, err, engine.ErrUnavailable)
	require.Less(t, len(err.Error()), 2*kserve.MaxErrorBytes)
	require.NotContains(t, err.Error(), "\n")
}

func TestTLSAndToken(t *testing.T) {
	server, authority := certificate()
	var seen []string
	s := serve(t, network(t), func(s *kservetest.Server) {
		s.TLS = &tls.Config{Certificates: []tls.Certificate{server}}
		s.Allow = func(r *http.Request) bool {
			seen = append(seen, r.Header.Get("Authorization"))
			return r.Header.Get("Authorization") == "Bearer right"
		}
	})
	trusting := func() (*tls.Config, error) { return &tls.Config{RootCAs: authority}, nil } //nolint:unparam // the field's type
	for _, scheme := range []string{"grpcs", "https"} {
		open := func(change func(*engine.Remote)) (*triton.Engine, error) {
			o := network(t)
			change(&o.Remote)
			return at(t.Context(), scheme, o, s)
		}
		_, err := open(func(*engine.Remote) {})
		require.ErrorIs(t, err, engine.ErrUnavailable)
		require.ErrorContains(t, err, "x509")
		require.ErrorContains(t, err, "(set remote.ca to the CA of the server's certificate)")
		_, err = open(func(r *engine.Remote) { r.TLS = trusting })
		require.ErrorContains(t, err, "(set remote.token_file to the file with the server's token)")
		token := "Bearer wrong"
		authorization := func() (string, error) { return token, nil } //nolint:unparam // the field's type
		_, err = open(func(r *engine.Remote) { r.TLS, r.Authorization = trusting, authorization })
		require.Error(t, err)
		require.NotContains(t, err.Error(), "wrong")
		token = "Bearer right"
		e, err := open(func(r *engine.Remote) { r.TLS, r.Authorization = trusting, authorization })
		require.NoError(t, err)
		_, err = infer(e)
		require.NoError(t, err)
		require.NoError(t, e.Close())
	}
	_, err := at(t.Context(), "grpc", network(t), s)
	require.ErrorIs(t, err, engine.ErrUnavailable, "plain text to a server with TLS")
	require.Contains(t, seen, "Bearer wrong")
}

func TestAddresses(t *testing.T) {
	for text, want := range map[string]string{
		"grpc://host/net":               "",
		"grpcs://[::1]:8001/net/3":      "",
		"http://a:1/net, https://b/net": "",
		"":                              `"" has no supported scheme`,
		"host:8001/net":                 `"host:8001/net" has no supported scheme`,
		"grpc://host":                   `"grpc://host" names no model`,
		"grpc:///net":                   `"grpc:///net" has no host`,
		"grpc://host/net/1/2":           `"grpc://host/net/1/2" has more than a host, a model and a version`,
		"grpc://host/net?token=x":       `"grpc://host/net?token=x" has more than a host, a model and a version`,
		"grpc://me:secret@host/net":     "an address must not contain a user or password (set remote.token_file or remote.password_file)",
		"grpc://me:sec%zzret@host/net":  "an address must not contain a user or password (set remote",
		"grpc://a/n" + strings.Repeat(",grpc://a/n", 16): "17 servers exceed the limit of 16",
	} {
		err := triton.Check(text)
		if want == "" {
			require.NoError(t, err, text)
			continue
		}
		require.ErrorContains(t, err, want, text)
		require.NotContains(t, err.Error(), "secret")
	}
}

// certificate makes one for loopback that is its own authority.
func certificate() (tls.Certificate, *x509.CertPool) {
	s := httptest.NewUnstartedServer(nil)
	s.StartTLS()
	defer s.Close()
	pool := x509.NewCertPool()
	pool.AddCert(s.Certificate())
	return s.TLS.Certificates[0], pool
}

// TestMemoryOfAnswersIsBounded: an answer that does not fit is refused with the setting that raises the limit, and the next one is taken.
func TestMemoryOfAnswersIsBounded(t *testing.T) {
	for _, scheme := range []string{"grpc", "http"} {
		s := serve(t, network(t), nil)
		o := network(t)
		o.Remote.Timeout, o.Remote.MaxAnswers = enough, 512<<10
		e, err := at(t.Context(), scheme, o, s)
		require.NoError(t, err)
		requireHealthy(t, e, 1)
		s.Model.SetFault(func(_ *kserve.InferRequest, a *kserve.InferResponse) error {
			a.Outputs = append([]kserve.Tensor(nil), a.Outputs...)
			a.Outputs[0].Data = make([]byte, 600<<10)
			return nil
		})
		_, err = infer(e)
		require.ErrorContains(t, err, "too much memory is in use: ", scheme)
		require.ErrorContains(t, err, " of 524288 (remote.memory_mb raises the limit)", scheme)
		s.Model.SetFault(nil)
		requireHealthy(t, e, 1)
		_, err = infer(e)
		require.NoError(t, err, scheme)
		answers := e.Status().Answers
		require.Equal(t, uint64(1), answers.Refused, scheme)
		require.Positive(t, answers.Used, scheme)
		require.Less(t, answers.Used, answers.Max, scheme)
		require.NoError(t, e.Close())
	}
}

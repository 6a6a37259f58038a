package triton_test

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/engine/kserve"
	"github.com/edge-infer/edge-infer/engine/kserve/kservetest"
	"github.com/edge-infer/edge-infer/engine/kserve/server"
	"github.com/edge-infer/edge-infer/engine/triton"
)

const (
	// claimed is the size in bytes of an answer that is far larger than the outputs.
	claimed = 250 << 20
	// onTheWay is more than sockets and HTTP hold of an answer that is not read, in bytes.
	onTheWay = 20 << 20
)

// liar is in front of a server. It answers what lies selects with bytes without an end.
type liar struct {
	server   http.Handler
	lies     atomic.Pointer[func(*http.Request) bool]
	announce bool         // the size of the answer over HTTP
	accepted atomic.Int64 // bytes
}

func (l *liar) set(lies func(*http.Request) bool) { l.lies.Store(&lies) }

func (l *liar) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if lies := l.lies.Load(); lies == nil || !(*lies)(r) {
		l.server.ServeHTTP(w, r)
		return
	}
	chunk := make([]byte, 64<<10)
	switch {
	case r.ProtoMajor == 2:
		w.Header().Set("Content-Type", "application/grpc")
		head := make([]byte, kserve.FrameHead)
		kserve.PutFrameHead(head, claimed)
		_, _ = w.Write(head)
	case l.announce:
		w.Header().Set("Content-Length", strconv.Itoa(claimed))
	}
	for range claimed / len(chunk) {
		n, err := w.Write(chunk)
		l.accepted.Add(int64(n))
		if err != nil {
			return
		}
	}
}

func isInference(r *http.Request) bool {
	return strings.HasSuffix(r.URL.Path, "/infer") || strings.HasSuffix(r.URL.Path, "/ModelInfer")
}

// TestAnEndlessAnswerIsBounded: of an answer that is larger than the outputs of the model, or of a description without an end, a bounded
// part is taken, at Open and later.
func TestAnEndlessAnswerIsBounded(t *testing.T) {
	const mib = 1 << 20
	for name, test := range map[string]struct {
		scheme   string
		announce bool
		open     bool // the size of the outputs, in the description
		when     string
		most     int64 // bytes
	}{
		"grpc, description":                 {scheme: "grpc", when: "description", most: 4 * mib},
		"http, description":                 {scheme: "http", when: "description", most: 4 * mib},
		"grpc, first image":                 {scheme: "grpc", when: "open", most: 2 * mib},
		"http, first image":                 {scheme: "http", when: "open", most: 2 * mib},
		"http, first image, announced":      {scheme: "http", announce: true, when: "open", most: 2 * mib},
		"grpc, first image of unknown size": {scheme: "grpc", open: true, when: "open", most: 64 * mib},
		"http, first image of unknown size": {scheme: "http", open: true, when: "open", most: 64 * mib},
		"grpc, later image":                 {scheme: "grpc", open: true, when: "later", most: 2 * mib},
		"http, later image":                 {scheme: "http", open: true, when: "later", most: 2 * mib},
		"http, later image, announced":      {scheme: "http", announce: true, open: true, when: "later", most: 2 * mib},
		"grpc, later image of a known size": {scheme: "grpc", when: "later", most: 2 * mib},
		"http, later image of a known size": {scheme: "http", when: "later", most: 2 * mib},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, network(t), nil)
			if test.open {
				s.Model.Redescribe("1", func(d *kserve.ModelMetadata) { d.Outputs[0].Shape = []int64{-1, -1, -1, -1} })
			}
			l := &liar{server: s, announce: test.announce}
			front := httptest.NewUnstartedServer(l)
			front.Config.Protocols = server.Protocols(false)
			front.Start()
			defer front.Close()
			switch test.when {
			case "open":
				l.set(isInference)
			case "description":
				l.set(func(r *http.Request) bool { return !isInference(r) })
			}
			address := test.scheme + strings.TrimPrefix(front.URL, "http") + "/" + kservetest.Name
			e, err := triton.Open(t.Context(), address, network(t), quiet)
			if test.when == "later" {
				require.NoError(t, err)
				_, err = infer(e)
				require.NoError(t, err)
				l.set(func(*http.Request) bool { return true })
				_, err = infer(e)
				require.NoError(t, e.Close())
			}
			require.ErrorContains(t, err, "the response has ")
			front.Close() // after the last answer
			require.Less(t, l.accepted.Load(), test.most+onTheWay)
		})
	}
}

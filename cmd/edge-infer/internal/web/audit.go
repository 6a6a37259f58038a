package web

import (
	"net/http"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/audit"
)

// audited records the requests that have changed something.
func (s *Server) audited(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			next.ServeHTTP(w, r)
			return
		}
		answer := &answer{ResponseWriter: w}
		next.ServeHTTP(answer, r)
		if answer.code >= http.StatusBadRequest {
			return
		}
		who, what := s.access.Client(r).Name, r.Method+" "+r.URL.Path
		s.Logger.Info("changed over the page", "what", what, "who", who, "from", r.RemoteAddr)
		if s.Audit != nil {
			s.Audit.Record(audit.Entry{Over: "page", Who: who, From: r.RemoteAddr, What: what})
		}
	})
}

// answer is a response whose status is known afterwards.
type answer struct {
	http.ResponseWriter
	code int // 0 until it is written: then it is 200
}

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(code int) {
	a.code = code
	a.ResponseWriter.WriteHeader(code)
}

// Unwrap is for http.ResponseController.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

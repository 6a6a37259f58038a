package web

import (
	"embed"
	"encoding/json"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/access"
)

//go:embed page
var page embed.FS

//go:embed openapi.json
var openAPI embed.FS

// policy lets the page load only its own files, and forbids embedding it in frames. Video that a script feeds has a blob: address.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; media-src 'self' blob:; connect-src 'self'; form-action 'self'; " +
	"base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types edge-infer"

// strictTransport is the HSTS header of a page served over TLS: half a year.
const strictTransport = "max-age=15552000"

// handler returns the handler of all routes.
func (s *Server) handler() http.Handler {
	open := http.NewServeMux() // routes without login
	open.HandleFunc("GET /login", s.access.ShowLogin)
	open.HandleFunc("POST /login", s.access.Login)
	open.HandleFunc("POST /logout", s.access.Logout)
	open.HandleFunc("GET /files/{name}", serveFile)
	open.HandleFunc("GET /healthz", s.serveHealth)
	open.HandleFunc("GET /readyz", s.serveReadiness)

	inside := http.NewServeMux()
	control := func(pattern string, handler http.HandlerFunc) {
		open.Handle(pattern, s.access.Restricted(access.RoleControl, s.counted(s.audited(handler))))
	}
	inside.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) { http.ServeFileFS(w, r, page, "page/index.html") })
	inside.HandleFunc("GET /api/status", withParameters(s.serveStatus))
	inside.HandleFunc("GET /api/detections", withParameters(s.feed.ServeDetections))
	inside.HandleFunc("GET /api/images", s.feed.ServeImages)
	inside.HandleFunc("GET /api/video", s.feed.ServeVideo)
	inside.HandleFunc("GET /api/cameras/{camera}/stream.mjpeg", s.feed.ServeStream)
	inside.HandleFunc("GET /api/cameras/{camera}/image.jpg", s.feed.ServeImage)
	inside.HandleFunc("GET /api/cameras/{camera}/analytics", withParameters(s.showAnalytics))
	control("PUT /api/cameras/{camera}/analytics", withParameters(s.saveAnalytics))
	inside.HandleFunc("POST /api/cameras/{camera}/analytics/check", withParameters(s.checkAnalytics))
	inside.HandleFunc("GET /api/cameras/{camera}/history", withParameters(s.serveHistory, "day"))
	inside.HandleFunc("GET /api/samples.tar", withParameters(s.serveSamples))
	notificationPages{s}.routes(inside.HandleFunc, control)
	s.cameraRoutes(inside.HandleFunc, control)
	stored := &eventPages{events: s.Events, logger: s.Logger, limit: s.limits.request}
	stored.eventRoutes(inside.HandleFunc)
	stored.recordingRoutes(inside.HandleFunc)
	if s.Profiling {
		control("GET /debug/pprof/", pprof.Index)
		control("GET /debug/pprof/profile", withoutReadDeadline(pprof.Profile))
		control("GET /debug/pprof/trace", withoutReadDeadline(pprof.Trace))
		control("GET /debug/pprof/symbol", pprof.Symbol)
	}
	open.Handle("GET /metrics", s.access.Restricted(access.RoleMetrics, s.exporter()))
	open.Handle("/", s.access.Restricted(access.RoleView, s.counted(inside)))
	requests := &access.RateLimit{PerSecond: 50, Burst: 200}
	return s.guarded(requests, s.access.Protected(open))
}

// guarded sets the common headers and rejects requests that are too frequent or too large.
func (s *Server) guarded(requests *access.RateLimit, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Permissions-Policy", "camera=(), microphone=(), geolocation=()")
		h.Set("Cache-Control", "no-store")
		if s.access.Encrypted {
			h.Set("Strict-Transport-Security", strictTransport)
		}
		switch {
		case !requests.Spend(r.RemoteAddr, time.Now()):
			h.Set("Retry-After", "1")
			http.Error(w, "too many requests", http.StatusTooManyRequests)
		default:
			r.Body = http.MaxBytesReader(w, r.Body, bodyBytes)
			next.ServeHTTP(w, r)
		}
	})
}

// withoutReadDeadline removes the server's read deadline.
func withoutReadDeadline(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
		next(w, r)
	}
}

// serveFile serves a static file of the page, which browsers may cache for a minute.
func serveFile(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "max-age=60")
	http.ServeFileFS(w, r, page, "page/files/"+r.PathValue("name"))
}

func writeJSON(w http.ResponseWriter, code int, value any) {
	text, err := json.Marshal(withLists(value))
	if err != nil {
		panic(err) // every value can be represented in JSON
	}
	if err := reserve(w, int64(len(text))); err != nil {
		writeOverLimit(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(append(text, '\n')) // the client may have disconnected
}

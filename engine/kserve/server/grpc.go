package server

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/edge-infer/edge-infer/engine/kserve"
	"github.com/edge-infer/edge-infer/internal/inflight"
)

const service = "/inference.GRPCInferenceService/"

// serveGRPC serves one unary gRPC call.
func (s *Server) serveGRPC(w http.ResponseWriter, r *http.Request, limit int64, memory *inflight.Lease) {
	w.Header().Set("Content-Type", "application/grpc")
	err := s.call(w, r, limit, memory)
	status := &kserve.Status{}
	if err != nil {
		status = asStatus(err)
	}
	w.Header().Set(http.TrailerPrefix+"Grpc-Status", strconv.Itoa(int(status.Code)))
	if status.Message != "" {
		w.Header().Set(http.TrailerPrefix+"Grpc-Message", escape(status.Message))
	}
}

// escape percent-encodes a gRPC status message: bytes outside printable ASCII and the percent sign.
func escape(text string) string {
	var out strings.Builder
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '%' {
			out.WriteString(url.PathEscape(string([]byte{c})))
		} else {
			out.WriteByte(c)
		}
	}
	return out.String()
}

func (s *Server) call(w http.ResponseWriter, r *http.Request, limit int64, memory *inflight.Lease) error {
	method, ok := strings.CutPrefix(r.URL.Path, service)
	if !ok {
		return kserve.Statusf(kserve.Unimplemented, "unknown service, there is %s", strings.Trim(service, "/"))
	}
	if s.Allow != nil && method != "ServerLive" && method != "ServerReady" && !s.Allow(r) {
		return kserve.Statusf(kserve.Unauthenticated, "the token is missing or another one")
	}
	ctx, cancel := context.WithCancel(r.Context())
	if timeout, ok := deadline(r.Header.Get("Grpc-Timeout")); ok {
		cancel()
		ctx, cancel = context.WithTimeout(r.Context(), timeout)
	}
	defer cancel()
	message, err := readMessage(r, limit, memory)
	if err != nil {
		return err
	}
	if method == "ModelInfer" {
		return s.modelInfer(ctx, w, message)
	}
	answer, err := s.answer(method, message)
	if err != nil {
		return err
	}
	return send(w, answer)
}

// deadline parses the grpc-timeout header: a number and a unit.
func deadline(text string) (time.Duration, bool) {
	if len(text) < 2 {
		return 0, false
	}
	unit, known := map[byte]time.Duration{
		'H': time.Hour, 'M': time.Minute, 'S': time.Second, 'm': time.Millisecond, 'u': time.Microsecond, 'n': time.Nanosecond,
	}[text[len(text)-1]]
	n, err := strconv.ParseInt(text[:len(text)-1], 10, 64)
	if !known || err != nil || n < 0 || n > 99999999 {
		return 0, false
	}
	return time.Duration(n) * unit, true
}

// readMessage reads the message of a unary call.
func readMessage(r *http.Request, limit int64, memory *inflight.Lease) ([]byte, error) {
	var head [kserve.FrameHead]byte
	if _, err := io.ReadFull(r.Body, head[:]); err != nil {
		return nil, kserve.Statusf(kserve.InvalidArgument, "the message ends too early")
	}
	length, err := kserve.FrameLength(head[:])
	if err != nil {
		return nil, err
	}
	if int64(length) > limit {
		return nil, kserve.Statusf(kserve.ResourceExhausted, "the request has more than %d bytes", limit)
	}
	body, err := readBody(r, memory)
	if err != nil {
		var large *http.MaxBytesError
		var refused *kserve.Status
		if errors.As(err, &large) || errors.As(err, &refused) {
			return nil, err
		}
		return nil, kserve.Statusf(kserve.InvalidArgument, "the message ends too early")
	}
	if len(body) != length {
		return nil, kserve.Statusf(kserve.InvalidArgument, "the message has %d bytes instead of %d", len(body), length)
	}
	return body, nil
}

// send writes the message of a unary response.
func send(w http.ResponseWriter, framed []byte) error {
	kserve.PutFrameHead(framed, len(framed)-kserve.FrameHead)
	_, err := w.Write(framed)
	return err
}

func (s *Server) modelInfer(ctx context.Context, w http.ResponseWriter, message []byte) error {
	var request kserve.InferRequest
	if err := request.Unmarshal(message); err != nil {
		return kserve.Statusf(kserve.InvalidArgument, "%v", err)
	}
	m, err := s.model(request.Model, request.Version)
	if err != nil {
		return err
	}
	if err := check(&request); err != nil {
		return err
	}
	return m.Infer(ctx, &request, func(a *kserve.InferResponse) error {
		if err := wanted(&request, a); err != nil {
			return err
		}
		a.ID = request.ID
		size := kserve.FrameHead + 512
		for i := range a.Outputs {
			size += len(a.Outputs[i].Data) + 128
		}
		return send(w, a.Marshal(make([]byte, kserve.FrameHead, size)))
	})
}

// answer serves calls without tensors. The response starts with room for the frame head.
func (s *Server) answer(method string, message []byte) ([]byte, error) {
	b := make([]byte, kserve.FrameHead, 256)
	truth := func(t kserve.BoolResponse) ([]byte, error) { return t.Marshal(b), nil }
	switch method {
	case "ServerLive":
		return truth(true)
	case "ServerReady":
		return truth(kserve.BoolResponse(s.ready() == nil))
	case "ServerMetadata":
		return s.About.Marshal(b), nil
	case "ModelReady", "ModelMetadata", "ModelConfig", "ModelStatistics":
	case "RepositoryIndex":
		return s.appendIndex(b), nil
	case "SystemSharedMemoryStatus", "CudaSharedMemoryStatus": // there are none
		return b, nil
	case "SystemSharedMemoryUnregister", "CudaSharedMemoryUnregister":
		return b, nil
	case "SystemSharedMemoryRegister", "CudaSharedMemoryRegister":
		return nil, kserve.Statusf(kserve.Unimplemented, "this server has no shared memory: send the tensors themselves")
	case "RepositoryModelLoad", "RepositoryModelUnload":
		return nil, errRepository
	case "TraceSetting":
		return nil, errTrace
	case "LogSettings":
		return nil, errLogging
	default:
		return nil, kserve.Statusf(kserve.Unimplemented, "%.64s is not answered by this server", method)
	}
	var named kserve.ModelRequest
	if err := named.Unmarshal(message); err != nil {
		return nil, kserve.Statusf(kserve.InvalidArgument, "%v", err)
	}
	if method == "ModelStatistics" && named.Name == "" {
		var all []kserve.ModelStatistics
		for _, m := range s.Models {
			all = append(all, m.Statistics())
		}
		return kserve.MarshalStatistics(b, all), nil
	}
	m, err := s.model(named.Name, named.Version)
	if err != nil {
		return nil, err
	}
	switch method {
	case "ModelReady":
		return truth(kserve.BoolResponse(m.Ready() == nil))
	case "ModelMetadata":
		metadata := m.Metadata()
		return metadata.Marshal(b), nil
	case "ModelConfig":
		config := m.Config()
		return config.Marshal(b), nil
	}
	return kserve.MarshalStatistics(b, []kserve.ModelStatistics{m.Statistics()}), nil
}

func (s *Server) appendIndex(b []byte) []byte {
	for _, e := range s.index() {
		b = kserve.AppendIndex(b, e.Name, e.Version, e.State, e.Reason)
	}
	return b
}

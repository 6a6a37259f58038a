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

	"google.golang.org/protobuf/proto"

	"github.com/edge-infer/edge-infer/engine/kserve"
	"github.com/edge-infer/edge-infer/engine/kserve/kservepb"
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
	framed := make([]byte, kserve.FrameHead, 256)
	if answer != nil {
		framed, err = kserve.Marshal(framed, answer)
	}
	if err != nil {
		return err
	}
	return send(w, framed)
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

// answer returns the response to a call without tensors; nil is an empty message.
func (s *Server) answer(method string, message []byte) (proto.Message, error) {
	switch method {
	case "ServerLive":
		return &kservepb.ReadyResponse{Ready: true}, nil
	case "ServerReady":
		return &kservepb.ReadyResponse{Ready: s.ready() == nil}, nil
	case "ServerMetadata":
		return s.About.Message(), nil
	case "ModelReady", "ModelMetadata", "ModelConfig", "ModelStatistics":
	case "RepositoryIndex":
		return s.indexMessage(), nil
	case "SystemSharedMemoryStatus", "CudaSharedMemoryStatus": // there are none
		return nil, nil
	case "SystemSharedMemoryUnregister", "CudaSharedMemoryUnregister":
		return nil, nil
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
	var named kservepb.ModelRequest
	if err := kserve.Unmarshal(message, &named); err != nil {
		return nil, kserve.Statusf(kserve.InvalidArgument, "%v", err)
	}
	if method == "ModelStatistics" && named.Name == "" {
		return s.statisticsMessage(nil), nil
	}
	m, err := s.model(named.Name, named.Version)
	if err != nil {
		return nil, err
	}
	switch method {
	case "ModelReady":
		return &kservepb.ReadyResponse{Ready: m.Ready() == nil}, nil
	case "ModelMetadata":
		metadata := m.Metadata()
		return metadata.Message(), nil
	case "ModelConfig":
		config := m.Config()
		return config.Message(), nil
	}
	return s.statisticsMessage(m), nil
}

func (s *Server) statisticsMessage(of Model) proto.Message {
	var response kservepb.ModelStatisticsResponse
	for _, statistics := range s.statistics(of) {
		response.ModelStats = append(response.ModelStats, statistics.Message())
	}
	return &response
}

func (s *Server) indexMessage() proto.Message {
	var response kservepb.RepositoryIndexResponse
	for _, e := range s.index() {
		response.Models = append(response.Models, &kservepb.RepositoryIndexResponse_ModelIndex{
			Name: e.Name, Version: e.Version, State: e.State, Reason: e.Reason,
		})
	}
	return &response
}

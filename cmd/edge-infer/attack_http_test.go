package main

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/edge-infer/edge-infer/engine/kserve"
)

// request writes an HTTP request; the length of its body may be a lie.
func request(method, path string, length int, body []byte, headers ...string) []byte {
	text := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n%s\r\n", method, path, length,
		strings.Join(append(headers, ""), "\r\n"))
	return append([]byte(text), body...)
}

// authorization is the header of nobody, of a viewer, of the owner, or of somebody who guesses.
func (a *arena) authorization() string {
	token := choose(a, attackViewer, attackToken, "guess", string(a.bytes(20)))
	return "Authorization: Bearer " + strings.Map(printable, token)
}

// printable drops what ends a header.
func printable(r rune) rune {
	if r < ' ' {
		return -1
	}
	return r
}

// attackPage sends noise, half requests, guesses, requests of other sites, odd paths and zones, and streams that nobody reads.
func (a *arena) attackPage() {
	paths := []string{
		"/", "/api/status", "/api/detections", "/api/images", "/api/cameras/bad/stream.mjpeg", "/api/cameras/bad/image.jpg",
		"/api/cameras/bad/analytics", "/api/cameras/bad/history?day=2026-02-31", "/api/events?limit=-1", "/api/events?limit=99999999999&text=%ff",
		"/api/cameras/bad/events/x/snapshot.jpg", "/metrics", "/readyz", "/files/../../etc/passwd", "/debug/pprof/", "/login",
	}
	path := choose(a, paths...)
	zones := []byte(`{"zones":[{"name":"yard","points":[{"x":0,"y":0},{"x":1,"y":0},{"x":0,"y":1}]}]}`)
	switch a.random.IntN(8) {
	case 0:
		a.send(a.gate.address, a.bytes(2000), false)
	case 1:
		get := request(http.MethodGet, path, 0, nil, a.authorization())
		a.send(a.gate.address, get[:a.random.IntN(len(get))], true)
	case 2:
		length := choose(a, 10, 1000, 1<<30)
		a.send(a.gate.address, request(http.MethodPut, "/api/cameras/bad/analytics", length, zones[:9], a.authorization()), true)
	case 3:
		a.send(a.gate.address, request(http.MethodPut, "/api/cameras/bad/analytics", len(zones), a.damaged(zones), a.authorization(),
			"Content-Type: application/json"), false)
	case 4:
		login := []byte("token=" + string(a.bytes(30)))
		form := "Content-Type: application/x-www-form-urlencoded"
		a.send(a.gate.address, request(http.MethodPost, "/login", len(login), login, form), false)
	case 5:
		a.send(a.gate.address, request(http.MethodPost, path, 2, []byte("{}"), a.authorization(), "Origin: http://elsewhere.example",
			"Sec-Fetch-Site: cross-site"), false)
	case 6:
		a.send(a.gate.address, a.damaged(request(http.MethodGet, path, 0, nil, a.authorization())), false)
	case 7:
		a.send(a.gate.address, request(http.MethodGet, "/api/cameras/bad/stream.mjpeg", 0, nil, "Authorization: Bearer "+attackViewer), true)
	}
}

// attackServeHTTP sends noise, half bodies, damaged inferences, long lists and deep nesting.
func (a *arena) attackServeHTTP() {
	const path = "/v2/models/demo/infer"
	viewer, address := "Authorization: Bearer "+attackViewer, a.server.address
	infer := []byte(`{"inputs":[{"name":"images","shape":[1,3,2,2],"datatype":"FP32","data":[0,1,2,3,4,5,6,7,8,9,10,11]}]}`)
	var body []byte
	switch a.random.IntN(6) {
	case 0:
		a.send(address, a.bytes(2000), false)
		return
	case 1: // the rest of 25 MB never comes
		a.send(address, request(http.MethodPost, path, 25_000_000, make([]byte, a.random.IntN(1<<20)), viewer), true)
		return
	case 2:
		body = a.damaged(infer)
	case 3:
		body = []byte(`{"inputs":[` + strings.Repeat("{},", 100_000+a.random.IntN(100_000)) + `{}]}`)
	case 4:
		body = []byte(strings.Repeat(choose(a, "[", `{"a":`), 100_000))
	case 5: // the head is longer or shorter than it says
		body = append(
			[]byte(`{"inputs":[{"name":"images","shape":[1,3,2,2],"datatype":"FP32","parameters":{"binary_data_size":48}}]}`),
			a.bytes(96)...)
	}
	to := choose(a, path, path, "/v2/models/%2e%2e/infer", "/v2/repository/index", "/v2/models/demo/config")
	head := fmt.Sprintf("Inference-Header-Content-Length: %d", a.random.IntN(2*len(body)+1)-1)
	text := request(http.MethodPost, to, len(body), body, choose(a, viewer, viewer, a.authorization()), head)
	a.send(address, text, a.random.IntN(8) == 0)
}

// http2Preface begins an HTTP/2 connection; empty settings follow.
var http2Preface = append([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), 0, 0, 0, 4, 0, 0, 0, 0, 0)

// attackServeGRPC sends damaged calls, damaged frames, and connections that stay idle.
func (a *arena) attackServeGRPC() {
	switch a.random.IntN(4) {
	case 0:
		a.send(a.server.address, http2Preface, true)
	case 1:
		text := bytes.Clone(http2Preface)
		for range 1 + a.random.IntN(20) {
			payload := a.bytes(64)
			text = binary.BigEndian.AppendUint32(text, uint32(len(payload))<<8|uint32(a.random.UintN(12))) // length and type
			text = append(text, byte(a.random.UintN(256)))                                                 // flags
			text = binary.BigEndian.AppendUint32(text, a.random.Uint32N(9))                                // stream
			text = append(text, payload...)
		}
		a.send(a.server.address, text, false)
	default:
		a.call()
	}
}

// call makes a gRPC call with a damaged message.
func (a *arena) call() {
	infer := kserve.InferRequest{
		Model:  "demo",
		ID:     "x",
		Inputs: []kserve.Tensor{{Name: "images", Datatype: "FP32", Shape: []int64{1, 3, 2, 2}}},
	}
	message := kserve.AppendRaw(infer.AppendHead(nil), 48)
	message = append(message, make([]byte, 48)...)
	if a.random.IntN(4) > 0 {
		message = a.damaged(message)
	}
	head := make([]byte, 5)
	kserve.PutFrameHead(head, choose(a, len(message), len(message), len(message)+1, 1<<30))
	head[0] = choose[byte](a, 0, 0, 1, 9) // compressed
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: protocols, TLSClientConfig: &tls.Config{}}
	defer transport.CloseIdleConnections()
	const infers = "ModelInfer"
	method := choose(a, infers, infers, infers, "ModelMetadata", "ModelConfig", "ServerMetadata", "RepositoryIndex", "None", "")
	r, err := http.NewRequestWithContext(a.t.Context(), http.MethodPost, "http://"+a.server.address+"/inference.GRPCInferenceService/"+method,
		bytes.NewReader(append(head, message...)))
	if err != nil {
		return
	}
	r.Header.Set("Content-Type", "application/grpc")
	r.Header.Set("Authorization", "Bearer "+attackViewer)
	response, err := (&http.Client{Transport: transport, Timeout: 2 * time.Second}).Do(r)
	if err != nil {
		return
	}
	_, _ = io.Copy(io.Discard, response.Body)
	_ = response.Body.Close()
}

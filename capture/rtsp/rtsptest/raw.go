package rtsptest

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/textproto"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/pion/rtp"
)

// Raw is a camera that answers with given texts, for what no library sends. The fields must not change after Start; SetSDP changes SDP.
type Raw struct {
	// SDP describes the stream.
	SDP string
	// Headers are the lines of the answers to a method, without those of all answers; nil has the usual ones.
	Headers map[string]string
	// Status is the status of the answer to a request, such as "401 Unauthorized"; nil: always "200 OK".
	Status func(method string, header textproto.MIMEHeader) string
	// Requested is called with each request; may be nil.
	Requested func(method, target string, header textproto.MIMEHeader)
	// TLS makes it an rtsps:// camera; nil: rtsp://.
	TLS *tls.Config
	// Play sends the stream to a client that plays: interleaved frames on channel 0. The connection closes when it returns.
	Play func(send func(packet *rtp.Packet) error)

	Connections atomic.Int32

	listener net.Listener
	all      sync.WaitGroup
	mu       sync.Mutex
	open     map[net.Conn]bool // nil after Close
}

// Start listens on a port of 127.0.0.1.
func (r *Raw) Start() error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if r.TLS != nil {
		listener = tls.NewListener(listener, r.TLS)
	}
	r.listener = listener
	r.open = map[net.Conn]bool{}
	r.all.Go(func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			r.Connections.Add(1)
			r.all.Go(func() { r.serve(connection) })
		}
	})
	return nil
}

// URL returns the address of the stream.
func (r *Raw) URL() string {
	scheme := "rtsp"
	if r.TLS != nil {
		scheme = "rtsps"
	}
	return scheme + "://" + r.listener.Addr().String() + "/video"
}

// SetSDP changes the description. It may be called from any goroutine.
func (r *Raw) SetSDP(sdp string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.SDP = sdp
}

// Close closes all connections and waits until nothing runs.
func (r *Raw) Close() {
	_ = r.listener.Close()
	r.mu.Lock()
	for connection := range r.open {
		_ = connection.Close()
	}
	r.open = nil
	r.mu.Unlock()
	r.all.Wait()
}

// serve answers the requests of a connection. It ends with it.
func (r *Raw) serve(connection net.Conn) {
	defer connection.Close()
	r.mu.Lock()
	if r.open == nil {
		r.mu.Unlock()
		return
	}
	r.open[connection] = true
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.open, connection)
	}()
	_ = r.answerAll(connection) // the client closed it, or Close did
}

func (r *Raw) answerAll(connection net.Conn) error {
	reader := textproto.NewReader(bufio.NewReader(connection))
	for {
		line, err := reader.ReadLine()
		if err != nil {
			return err
		}
		header, err := reader.ReadMIMEHeader()
		if err != nil {
			return err
		}
		method, rest, _ := strings.Cut(line, " ")
		if r.Requested != nil {
			target, _, _ := strings.Cut(rest, " ")
			r.Requested(method, target, header)
		}
		status := r.answer(connection, method, header)
		if method != "PLAY" || status != "200 OK" {
			continue
		}
		if r.Play != nil {
			r.Play(func(packet *rtp.Packet) error { return sendFrame(connection, packet) })
		}
		return nil
	}
}

// answer answers one request and returns the status.
func (r *Raw) answer(connection net.Conn, method string, header textproto.MIMEHeader) (status string) {
	status = "200 OK"
	if r.Status != nil {
		status = r.Status(method, header)
	}
	lines, given := r.Headers[method]
	if !given {
		lines = map[string]string{
			"DESCRIBE": "Content-Type: application/sdp\r\n", "SETUP": "Session: 1\r\nTransport: RTP/AVP/TCP;unicast;interleaved=0-1\r\n",
			"OPTIONS": "Public: DESCRIBE, SETUP, PLAY\r\n", "PLAY": "Session: 1\r\n",
		}[method]
	}
	body := ""
	if method == "DESCRIBE" && status == "200 OK" {
		r.mu.Lock()
		body = r.SDP
		r.mu.Unlock()
		lines += fmt.Sprintf("Content-Length: %d\r\n", len(body))
	}
	_, _ = fmt.Fprintf(connection, "RTSP/1.0 %s\r\nCSeq: %s\r\n%s\r\n%s", status, header.Get("CSeq"), lines,
		body) // an error is the next read's
	return status
}

// sendFrame sends an RTP packet as an interleaved frame of channel 0.
func sendFrame(connection net.Conn, packet *rtp.Packet) error {
	data, err := packet.Marshal()
	if err != nil {
		return err
	}
	if len(data) > 0xffff {
		return errors.New("the packet is too large")
	}
	frame := append([]byte{'$', 0, byte(len(data) >> 8), byte(len(data))}, data...)
	_, err = connection.Write(frame)
	return err
}

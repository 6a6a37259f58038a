package rtsp

import (
	"crypto/rand"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bluenviron/gortsplib/v5"
	"github.com/bluenviron/gortsplib/v5/pkg/base"
	"github.com/bluenviron/gortsplib/v5/pkg/description"
	"github.com/pion/rtp"

	"github.com/edge-infer/edge-infer/capture"
)

// readerQueue is the number of packets that a reader may be behind, more than the largest key frame has. Further packets are dropped for
// this reader.
const readerQueue = 8192

// Relay offers the video of a camera on loopback, under an address that cannot be guessed.
type Relay struct {
	camera  *Stream
	server  *gortsplib.Server
	path    string
	offered *description.Media
	wanted  atomic.Bool // a decoder plays
	packer  *packer     // nil while the camera's packets are passed on as they are; the client's goroutine only

	mu     sync.Mutex
	stream *gortsplib.ServerStream // nil until it can be read
}

// Serve starts the relay, once.
func (s *Stream) Serve() (*Relay, error) {
	r := &Relay{camera: s, path: "/" + rand.Text()}
	if err := r.serve(); err != nil {
		return nil, s.camera.uri.NewError("open", capture.ErrUnavailable, "the decoder cannot be served on 127.0.0.1", "",
			capture.NetworkCause(err))
	}
	s.relay.Store(r)
	s.watch()
	return r, nil
}

func (r *Relay) serve() error {
	r.server = &gortsplib.Server{Handler: &handler{r}, RTSPAddress: "127.0.0.1:0", WriteQueueSize: readerQueue}
	if err := r.server.Start(); err != nil {
		return err
	}
	r.offered = &description.Media{Type: description.MediaTypeVideo, Formats: r.camera.camera.video.Formats}
	stream := &gortsplib.ServerStream{Server: r.server, Desc: &description.Session{Medias: []*description.Media{r.offered}}}
	if err := stream.Initialize(); err != nil {
		r.server.Close()
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stream = stream
	return nil
}

// write passes a packet of the camera on to the decoders. Over TCP some cameras send packets that are larger than the library's limit, for
// instance UniFi's, each with a whole image; from the first one on the video is packed anew.
func (r *Relay) write(packet *rtp.Packet, at time.Time) {
	if r.packer == nil && packet.MarshalSize() > maxPacket {
		r.packer = newPacker(r.offered.Formats[0], packet.SequenceNumber)
	}
	if r.packer == nil {
		r.send(packet, at)
		return
	}
	for _, packed := range r.packer.pack(packet) {
		r.send(packed, at)
	}
}

func (r *Relay) send(packet *rtp.Packet, at time.Time) {
	_ = r.readable().WritePacketRTPWithNTP(r.offered, packet, at) // fails for decoders that are gone or too slow
}

// Address returns the URL for decoders. It is valid until Close, on this machine only.
func (r *Relay) Address() string {
	return "rtsp://" + r.server.NetListener().Addr().(*net.TCPAddr).String() + r.path
}

// readable returns the stream for decoders, nil before there is one.
func (r *Relay) readable() *gortsplib.ServerStream {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stream
}

// handler answers the decoders.
type handler struct{ *Relay }

func (h *handler) answer(path string) (*base.Response, *gortsplib.ServerStream, error) {
	stream := h.readable()
	if path != h.path || stream == nil {
		return &base.Response{StatusCode: base.StatusNotFound}, nil, nil
	}
	return &base.Response{StatusCode: base.StatusOK}, stream, nil
}

// OnDescribe implements gortsplib.ServerHandlerOnDescribe.
func (h *handler) OnDescribe(c *gortsplib.ServerHandlerOnDescribeCtx) (*base.Response, *gortsplib.ServerStream, error) {
	return h.answer(c.Path)
}

// OnSetup implements gortsplib.ServerHandlerOnSetup.
func (h *handler) OnSetup(c *gortsplib.ServerHandlerOnSetupCtx) (*base.Response, *gortsplib.ServerStream, error) {
	return h.answer(c.Path)
}

// OnPlay implements gortsplib.ServerHandlerOnPlay.
func (h *handler) OnPlay(*gortsplib.ServerHandlerOnPlayCtx) (*base.Response, error) {
	h.wanted.Store(true)
	return &base.Response{StatusCode: base.StatusOK}, nil
}

// OnResponse implements gortsplib.ServerHandlerOnResponse. It follows OnPlay; the decoder receives packets from now on, so that the camera
// can start without a packet being missed.
func (h *handler) OnResponse(*gortsplib.ServerConn, *base.Response) {
	if h.wanted.Load() {
		h.camera.start()
	}
}

// OnStreamWriteError implements gortsplib.ServerHandlerOnStreamWriteError: the decoder counts what it misses.
func (h *handler) OnStreamWriteError(*gortsplib.ServerHandlerOnStreamWriteErrorCtx) {}

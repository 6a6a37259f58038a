package rtsp

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bluenviron/gortsplib/v5"
	"github.com/bluenviron/gortsplib/v5/pkg/description"
	"github.com/bluenviron/gortsplib/v5/pkg/format"
	"github.com/pion/rtp"

	"github.com/edge-infer/edge-infer/capture"
)

// Options configures Open. Both time-outs must be set.
type Options struct {
	// OpenTimeout bounds the handshake with the camera; ReadTimeout is the decoder's limit between images.
	OpenTimeout, ReadTimeout time.Duration
	// KeepUnits is as in capture.Options.
	KeepUnits time.Duration

	dial func(ctx context.Context, network, address string) (net.Conn, error) // instead of a net.Dialer's
}

// Stream is the video of a camera, which is read over one connection. Units yields access units, Serve offers the packets to decoders that
// open URLs. The camera plays from the moment that the first of them is wanted, so that no decoder misses the first key frame.
type Stream struct {
	camera  *client
	units   depacketizer // nil for a codec that Units does not know
	newest  packetTimes  // of the packet before; the client's goroutine only
	losses  losses       // the client's goroutine only
	codec   capture.Codec
	ring    capture.Ring
	wanted  atomic.Bool           // by a reader of Units
	relay   atomic.Pointer[Relay] // nil before Serve
	play    sync.Once
	started sync.Once
	ended   chan struct{} // closed when err is set
	err     error
	cancel  context.CancelFunc
}

// Open connects to the camera. Its errors are *capture.Error, and ErrRefused if another client may do better. The context ends the
// connection, also later.
func Open(ctx context.Context, u capture.URI, options Options) (*Stream, error) {
	ctx, cancel := context.WithCancel(ctx)
	slow := time.AfterFunc(options.OpenTimeout, cancel)
	camera, err := dial(ctx, u, options)
	if !slow.Stop() || err != nil {
		defer cancel()
		if err == nil {
			camera.close()
			err = u.NewError("open", capture.ErrUnavailable, "the server does not answer", "check that the camera is on", nil)
		}
		return nil, err
	}
	s := &Stream{camera: camera, ended: make(chan struct{}), cancel: cancel}
	s.codec, s.units = newDepacketizer(camera.video)
	if options.KeepUnits > 0 && s.units != nil {
		s.ring.Keep, s.ring.Bytes = options.KeepUnits, capture.KeptRingBytes
		s.wanted.Store(true)
	}
	camera.client.OnPacketRTPAny(s.packet)
	return s, nil
}

// packet passes a packet of the camera on. The client's goroutine calls it.
func (s *Stream) packet(media *description.Media, _ format.Format, packet *rtp.Packet) {
	received := capture.Monotonic()
	if r := s.relay.Load(); r != nil {
		at, known := s.camera.client.PacketNTP(media, packet)
		if !known {
			at = time.Now()
		}
		r.write(packet, at)
	}
	if !s.wanted.Load() {
		return
	}
	s.losses.add(packet.SequenceNumber)
	before := s.newest
	s.newest = s.times(media, packet)
	unit, complete := s.units.add(packet)
	if !complete {
		return
	}
	at := s.newest
	if !packet.Marker { // some cameras set none: this packet has the next timestamp, and with it the unit before is complete
		at = before
	}
	unit.PTS, unit.Camera = at.pts, at.camera
	unit.Codec, unit.Received = s.codec, received
	unit.Gap = s.losses.take()
	s.ring.Put(unit)
}

// losses finds packets that are missing, by their sequence numbers. The library has put them in order.
type losses struct {
	begun bool
	last  uint16 // sequence number
	gap   bool   // since take
}

// maxLost is the largest number of packets that counts as lost: a larger step, or one back, is a camera that begins to count anew.
const maxLost = 4096

// add takes the sequence number of the next packet.
func (l *losses) add(number uint16) {
	missing := number - l.last - 1
	if l.begun && missing > 0 && missing <= maxLost {
		l.gap = true
	}
	l.begun, l.last = true, number
}

// take reports whether packets are missing since the last call.
func (l *losses) take() bool {
	gap := l.gap
	l.gap = false
	return gap
}

// packetTimes are the times of a packet as those of a Unit.
type packetTimes struct {
	pts    time.Duration
	camera time.Time
}

// times returns the times of a packet. It is called for each: the stream's clock starts with the first packet of a key frame.
func (s *Stream) times(media *description.Media, packet *rtp.Packet) (at packetTimes) {
	pts, _ := s.camera.client.PacketPTS(media, packet)
	at.pts = time.Duration(float64(pts) / float64(s.camera.video.Formats[0].ClockRate()) * float64(time.Second))
	at.camera, _ = s.camera.client.PacketNTP(media, packet)
	return at
}

// start makes the camera play.
func (s *Stream) start() {
	s.play.Do(func() {
		go func() {
			if _, err := s.camera.client.Play(nil); err != nil {
				s.camera.close()
			}
		}()
	})
}

// watch ends the readers when the camera's connection has ended. Without a reader nobody waits for the client.
func (s *Stream) watch() {
	s.started.Do(func() {
		go func() {
			s.err = cause(s.camera.client.Wait())
			close(s.ended)
			s.ring.End(s.err)
			if r := s.relay.Load(); r != nil {
				r.server.Close()
			}
		}()
	})
}

// Codec returns the codec, which does not change. It is UnknownCodec if Units cannot read the camera's.
func (s *Stream) Codec() capture.Codec { return s.codec }

// Units returns a reader that begins with the newest key frame. Readers are independent of each other. The codec must be known.
func (s *Stream) Units() *capture.UnitReader {
	reader := s.ring.Reader()
	s.wanted.Store(true)
	s.watch()
	s.start()
	return reader
}

// Ring returns the units received, for readers that may come later than the decoder; nil for a codec that Units does not know, and without
// Options.KeepUnits before the first call of Units.
func (s *Stream) Ring() *capture.Ring {
	if !s.wanted.Load() {
		return nil
	}
	return &s.ring
}

// Connection describes the connection to the camera: its transport, and encryption without a verified certificate.
func (s *Stream) Connection() string {
	text := "RTSP over " + map[gortsplib.Protocol]string{
		gortsplib.ProtocolTCP: "TCP", gortsplib.ProtocolUDP: "UDP", gortsplib.ProtocolUDPMulticast: "multicast",
	}[s.camera.client.Transport().Session.Protocol] // set by SETUP
	switch {
	case s.camera.uri.Scheme() != "rtsps":
		return text
	case s.camera.uri.Certificate == insecure:
		return text + ", encrypted, certificate not verified"
	}
	return text + ", encrypted"
}

// Err returns why the camera's stream has ended, nil while it has not.
func (s *Stream) Err() error {
	select {
	case <-s.ended:
		return s.err
	default:
		return nil
	}
}

// Close ends the connections to the camera and to the decoders.
func (s *Stream) Close() error {
	s.camera.close()
	s.cancel()
	if r := s.relay.Load(); r != nil {
		r.server.Close()
	}
	return nil
}

package broker

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mochi-mqtt/server/v2/packets"
)

// guard is a client's connection as seen by the library. It passes on only whole packets of valid form and size and closes connections that
// do not log in or do not read in time. The library allocates the size announced in a packet's header, up to 256 MiB.
type guard struct {
	net.Conn
	limits     *Limits
	inbound    *atomic.Int64       // bytes of large packets of all connections
	packets    *pace               // of packets that are no messages
	host       string              // address of the client, without the port
	onAdmitted func(*guard)        // called after the login
	onRefused  func(*guard, error) // called with the reason for closing the connection

	in *bufio.Reader
	// Reading goroutine only.
	packet    []byte // not yet read by the library
	large     int64  // bytes of packet counted in inbound
	connected bool   // CONNECT was read
	version   byte
	small     int                    // packets that were no messages
	due       []packets.Subscription // accepted by the SUBSCRIBE that is being processed, their retained messages are still to be sent

	done      chan struct{} // closed by Close
	closing   sync.Once
	number    uint64 // of the connection, set by listener.add
	admitted  atomic.Bool
	own       atomic.Bool // a client of this process, see Broker.Trust
	write     sync.Mutex
	published *atomic.Int64 // bytes published by all clients
	blocked   atomic.Int64  // published at the start of the write in progress, plus one; 0 for none
}

var (
	errLoginTimeout    = errors.New("no login in time")
	errSize            = errors.New("packet is too large")
	errInbound         = errors.New("too many large packets at once")
	errFirst           = errors.New("first packet is no CONNECT")
	errSecond          = errors.New("second CONNECT")
	errNotReading      = errors.New("client does not read")
	errConnections     = errors.New("too many connections")
	errUnauthenticated = errors.New("too many connections without a login")
	errSessions        = errors.New("too many clients are remembered")
	errRetained        = errors.New("no room to retain a message")
	errPanic           = errors.New("the broker failed on it")
	errDescriptors     = errors.New("no file descriptor left")
)

// smallPacket is the size limit of all packets except PUBLISH, in bytes.
const smallPacket = 64 << 10

func newGuard(conn net.Conn, l *listener) *guard {
	g := &guard{
		Conn:       conn,
		limits:     l.limits,
		inbound:    &l.inbound,
		packets:    l.packets,
		host:       hostOf(conn.RemoteAddr().String()),
		published:  &l.published,
		onAdmitted: l.admit,
		onRefused:  l.refuse,
		in:         bufio.NewReaderSize(conn, 2048),
		done:       make(chan struct{}),
	}
	_ = conn.SetDeadline(time.Now().Add(g.limits.Login)) // a closed connection fails at the first read
	return g
}

// Close closes the connection. Who waits for its share is woken.
func (g *guard) Close() error {
	g.closing.Do(func() { close(g.done) })
	return g.Conn.Close()
}

// admit is called after the client's login.
func (g *guard) admit() {
	g.admitted.Store(true)
	g.onAdmitted(g)
}

// Read returns the next bytes of validated packets. Errors other than network errors have been reported.
func (g *guard) Read(p []byte) (int, error) {
	for len(g.packet) == 0 {
		if err := g.next(); err != nil {
			g.release()
			return 0, g.report(err)
		}
	}
	n := copy(p, g.packet)
	if g.packet = g.packet[n:]; len(g.packet) == 0 {
		g.release()
	}
	return n, nil
}

func (g *guard) release() {
	g.inbound.Add(-g.large)
	g.large = 0
	g.packet = nil
}

// report reports why a connection is closed, with MQTT 5 also to the client.
func (g *guard) report(err error) error {
	var timeout net.Error
	switch {
	case errors.As(err, &timeout) && timeout.Timeout() && !g.admitted.Load():
		err = errLoginTimeout
	case errors.As(err, &timeout), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed):
		return err
	}
	g.onRefused(g, err)
	if g.admitted.Load() && g.version == version5 {
		const malformed, tooLarge = 0x81, 0x95
		code := byte(malformed)
		if errors.Is(err, errSize) {
			code = tooLarge
		}
		_, _ = g.Write([]byte{typeDisconnect << 4, 1, code}) // best effort
	}
	return err
}

// next reads a packet.
func (g *guard) next() error {
	header, err := g.in.ReadByte()
	if err != nil {
		return err
	}
	start := append(make([]byte, 0, 5), header)
	length, shift := 0, 0
	for {
		b, err := g.in.ReadByte()
		if err != nil {
			return unexpected(err)
		}
		start = append(start, b)
		length |= int(b&0x7f) << shift
		if b < 0x80 {
			break
		}
		if shift += 7; shift == 28 {
			return errMalformed
		}
	}
	if err := g.allow(header>>4, length); err != nil {
		return err
	}
	packet, err := g.receive(start, length)
	if err != nil {
		return unexpected(err)
	}
	body := packet[len(start):]
	if err := check(header, body, g.version); err != nil {
		return err
	}
	if g.connected && header>>4 != typePublish {
		g.small++
		if g.small%packetsPerWait == 0 {
			g.packets.wait(g, packetsPerWait*packetCost)
		}
	}
	if !g.connected {
		g.connected, g.version = true, connectVersion(body)
	}
	g.packet = packet
	return nil
}

// allow checks a packet's type and length before memory is allocated for it.
func (g *guard) allow(kind byte, length int) error {
	limit := smallPacket
	switch {
	case !g.connected && kind != typeConnect:
		return errFirst
	case g.connected && kind == typeConnect:
		return errSecond
	case !g.connected:
		limit = g.limits.Connect
	case kind == typePublish:
		limit = g.limits.Packet
	}
	if length > limit {
		return fmt.Errorf("%w: %d bytes, at most %d are taken", errSize, length, limit)
	}
	if length > smallPacket {
		g.large = int64(length)
		if g.inbound.Add(g.large) > g.limits.Inbound {
			return errInbound
		}
	}
	return nil
}

// receive reads the body after the fixed header. Memory grows with the received data.
func (g *guard) receive(packet []byte, length int) ([]byte, error) {
	for length > 0 {
		n := min(length, max(smallPacket, len(packet)))
		packet = append(packet, make([]byte, n)...)
		if _, err := io.ReadFull(g.in, packet[len(packet)-n:]); err != nil {
			return nil, err
		}
		length -= n
	}
	return packet, nil
}

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// Write sends all of p. The connection of a client that does not read within the limit is closed.
func (g *guard) Write(p []byte) (int, error) {
	const piece = 32 << 10
	g.write.Lock()
	defer g.write.Unlock()
	g.blocked.Store(g.published.Load() + 1)
	defer g.blocked.Store(0)
	sent := 0
	for sent < len(p) {
		err := g.Conn.SetWriteDeadline(time.Now().Add(g.limits.Write))
		var n int
		if err == nil {
			n, err = g.Conn.Write(p[sent:min(sent+piece, len(p))])
		}
		sent += n
		if err != nil {
			var timeout net.Error
			if errors.As(err, &timeout) && timeout.Timeout() {
				g.onRefused(g, errNotReading)
			}
			g.Close()
			return sent, err
		}
	}
	return sent, nil
}

// blockedSince returns how many bytes had been published when the write in progress began.
func (g *guard) blockedSince() (published int64, blocked bool) {
	at := g.blocked.Load()
	return at - 1, at != 0
}

// SetDeadline sets the read deadline after the login; before it the login limit applies. Write has its own deadline.
func (g *guard) SetDeadline(t time.Time) error {
	if !g.admitted.Load() {
		return nil
	}
	return g.Conn.SetReadDeadline(t)
}

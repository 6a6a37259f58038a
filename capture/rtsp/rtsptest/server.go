// Package rtsptest is an RTSP server that plays video files as cameras do, with faults on demand. Tests, benchmarks and the
// self-test of the program use it.
package rtsptest

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/bluenviron/gortsplib/v5"
	"github.com/bluenviron/gortsplib/v5/pkg/auth"
)

// Parameters is where a server sends the parameter sets (VPS, SPS, PPS).
type Parameters int

// The places of parameter sets: with ParametersEverywhere they are in the SDP and before every key frame.
const (
	ParametersEverywhere Parameters = iota
	ParametersInSDP
	ParametersInBand
)

// Authentication is a method by which a client proves its identity.
type Authentication int

// The methods of authentication. AnyAuthentication offers both to the client.
const (
	AnyAuthentication Authentication = iota
	BasicAuthentication
	DigestAuthentication
)

// Faults are what a server does wrong on every path. The zero value is a flawless server. Counts begin anew on each path and go on while
// a client plays; a fault of n-th things hits the n-th, the 2n-th and so on.
type Faults struct {
	// LosePacket drops every n-th RTP packet, LoseFraction this share of them (0 to 1), drawn with Seed.
	LosePacket   int
	LoseFraction float64
	Seed         uint64
	// DamageUnit inverts bytes in every n-th access unit, which keeps its length. TruncateUnit sends the first half of every n-th.
	DamageUnit, TruncateUnit int
	// CloseAfter closes each connection this long after it began to play. 0 does not.
	CloseAfter time.Duration
}

// Server plays files on the paths /0, /1 ... of an address of this machine, each again and again with increasing timestamps, as long as
// it runs. The fields must not change after Start. A path sends to all of its clients the same packets, and RTCP sender reports with the
// wall-clock time at which its images were "taken": never later than they are sent.
type Server struct {
	// Address is the IP address, which must be a loopback address, and the port. Empty: a free port of 127.0.0.1.
	Address string
	// Files are MPEG-TS files with H.264 or H.265, or JPEG images one after another in a file *.mjpeg, which must have the Huffman tables of
	// the JPEG standard and a size divisible by 8 (ffmpeg ... -c:v mjpeg -huffman default). Path n plays file n modulo their number. Each is
	// in memory once. It begins with its first key frame, and its parameter sets must not change.
	Files []string
	// Paths is the number of paths; 0 is one for each file.
	Paths int
	// Rate is the speed relative to the file's timestamps; 0 is 1. The timestamps that are sent agree with it, so that a file of 25 fps
	// becomes a camera of 50 fps at rate 2.
	Rate float64
	// ImageRate is the frames per second of *.mjpeg files, which have no timestamps; 0 is 25.
	ImageRate float64
	// Parameters is where the parameter sets are sent.
	Parameters Parameters
	// JoinAnywhere lets the first client of a path begin with any access unit; without it that client gets nothing before the next key
	// frame. Clients that join a path with clients always begin anywhere.
	JoinAnywhere bool
	// Second is a file of the same codec that all paths play instead from SecondAfter on, in time of the stream since Start.
	Second      string
	SecondAfter time.Duration
	// Silent starts the server in silence; see SetSilent.
	Silent bool
	// User and Password restrict the server to one user, if User is not empty.
	User, Password string
	Authentication Authentication
	// UDP offers UDP and multicast as well as TCP.
	UDP bool
	// TLS makes the server one of rtsps, which encrypts packets by SRTP too; nil does not.
	TLS    *tls.Config
	Faults Faults

	server *gortsplib.Server
	paths  []*path
	ready  chan struct{} // closed when paths are complete
	ctx    context.Context
	cancel context.CancelFunc
	timers sync.WaitGroup // goroutines of the paths
	silent atomic.Bool
}

// writeQueue is how many packets a client may be behind, more than the largest key frame has. Further packets are dropped for it.
const writeQueue = 4096

// Start loads the files and listens. On an error nothing remains open.
func (s *Server) Start() error {
	if err := s.start(); err != nil {
		s.Close()
		return fmt.Errorf("start RTSP server: %w", err)
	}
	return nil
}

func (s *Server) start() error {
	if err := s.complete(); err != nil {
		return err
	}
	videos, second, err := s.load()
	if err != nil {
		return err
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.ready = make(chan struct{})
	s.silent.Store(s.Silent)
	server := &gortsplib.Server{Handler: &handler{server: s}, RTSPAddress: s.Address, WriteQueueSize: writeQueue, TLSConfig: s.TLS}
	switch s.Authentication {
	case BasicAuthentication:
		server.AuthMethods = []auth.VerifyMethod{auth.VerifyMethodBasic}
	case DigestAuthentication:
		server.AuthMethods = []auth.VerifyMethod{auth.VerifyMethodDigestMD5}
	}
	if err := s.listen(server); err != nil {
		return err
	}
	s.server = server
	for number := range s.Paths {
		p, err := newPath(s, number, videos[number%len(videos)], second)
		if err != nil {
			return err
		}
		s.paths = append(s.paths, p)
	}
	close(s.ready)
	begin := time.Now()
	for _, p := range s.paths {
		s.timers.Go(func() { p.run(s.ctx, begin) })
	}
	return nil
}

// The ports for UDP: a server takes the first four of firstPort and those above that are free.
const (
	firstPort = 20000
	lastPort  = 30000
)

// listen starts the server. With UDP it takes free ports: RTP has an even one and RTCP the next.
func (s *Server) listen(server *gortsplib.Server) error {
	if !s.UDP {
		return server.Start()
	}
	host, _, _ := net.SplitHostPort(s.Address) // checked before
	server.MulticastIPRange = "239.192.7.0/24"
	for port := firstPort; ; port += 4 {
		at := func(offset int) string { return net.JoinHostPort(host, strconv.Itoa(port+offset)) }
		server.UDPRTPAddress, server.UDPRTCPAddress = at(0), at(1)
		server.MulticastRTPPort, server.MulticastRTCPPort = port+2, port+3
		err := server.Start()
		if err == nil || port >= lastPort || !errors.Is(err, syscall.EADDRINUSE) {
			return err
		}
	}
}

// complete checks the fields and fills in the defaults.
func (s *Server) complete() error {
	if s.Address == "" {
		s.Address = "127.0.0.1:0"
	}
	host, _, err := net.SplitHostPort(s.Address)
	if err != nil {
		return err
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return fmt.Errorf("%s is not a loopback address", host)
	}
	if len(s.Files) == 0 {
		return errors.New("no file")
	}
	if s.Paths == 0 {
		s.Paths = len(s.Files)
	}
	if s.Rate == 0 {
		s.Rate = 1
	}
	if s.ImageRate == 0 {
		s.ImageRate = 25
	}
	f := s.Faults
	if s.Paths < 0 || s.Rate < 0 || s.ImageRate < 0 || f.LosePacket < 0 || f.LoseFraction < 0 || f.LoseFraction > 1 || f.DamageUnit < 0 ||
		f.TruncateUnit < 0 {
		return errors.New("a number is out of range")
	}
	return nil
}

// load reads each file once. second is nil without Second.
func (s *Server) load() (videos []*video, second *video, err error) {
	for _, file := range s.Files {
		v, err := load(file, s.Parameters, s.ImageRate)
		if err != nil {
			return nil, nil, err
		}
		videos = append(videos, v)
	}
	if s.Second == "" {
		return videos, nil, nil
	}
	second, err = load(s.Second, s.Parameters, s.ImageRate)
	if err != nil {
		return nil, nil, err
	}
	for i, v := range videos {
		if v.codec.name() != second.codec.name() {
			return nil, nil, fmt.Errorf("%s has %s, and %s has %s", s.Files[i], v.codec.name(), s.Second, second.codec.name())
		}
	}
	return videos, second, nil
}

// Close disconnects all clients and waits until nothing runs. It may be called at any time after Start has returned, more than once.
func (s *Server) Close() {
	if s.cancel == nil {
		return
	}
	s.cancel()
	if s.server != nil {
		s.server.Close()
	}
	s.timers.Wait()
	for _, p := range s.paths {
		p.stream.Close()
	}
}

// Listening returns the IP address and the port of a started server.
func (s *Server) Listening() string { return s.server.NetListener().Addr().String() }

// URL returns the address of a path, without user and password.
func (s *Server) URL(path int) string {
	scheme := "rtsp"
	if s.TLS != nil {
		scheme = "rtsps"
	}
	return fmt.Sprintf("%s://%s/%d", scheme, s.Listening(), path)
}

// SetSilent has all paths send nothing while connections remain open and requests are answered, or ends that. The streams go on
// meanwhile, as those of a camera whose network is interrupted. It may be called from any goroutine.
func (s *Server) SetSilent(silent bool) { s.silent.Store(silent) }

// Stats returns what has happened on a path since Start. It may be called from any goroutine.
func (s *Server) Stats(path int) Stats { return s.paths[path].snapshot() }

// Stats counts what has happened on a path.
type Stats struct {
	Connections int    // that asked for the path, also those that were refused
	Playing     int    // clients now
	Units       uint64 // access units that were sent, damaged ones included
	Packets     uint64 // RTP packets that were sent
	Lost        uint64 // RTP packets that Faults dropped
	Dropped     uint64 // RTP packets that a client was too slow for
}

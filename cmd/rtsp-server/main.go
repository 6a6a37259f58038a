// Command rtsp-server plays video files over RTSP on this machine, as cameras for tests and benchmarks; see package rtsptest. It prints
// the IP address and port once it listens. Path n is rtsp://ADDRESS/n. SIGUSR1 begins and ends silence.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/edge-infer/edge-infer/capture/rtsp/rtsptest"
)

func main() {
	var s rtsptest.Server
	flag.StringVar(&s.Address, "listen", "127.0.0.1:8554", "loopback address and port; port 0: any")
	flag.IntVar(&s.Paths, "paths", 0, "paths /0, /1 ...; 0: one for each file")
	flag.Float64Var(&s.Rate, "rate", 1, "speed relative to the file")
	flag.Float64Var(&s.ImageRate, "image-rate", 25, "frames per second of *.mjpeg files")
	flag.BoolVar(&s.JoinAnywhere, "join-anywhere", false, "a client need not begin with a key frame")
	parameters := flag.String("parameters", "everywhere", "where the parameter sets are: everywhere, sdp, in-band")
	flag.StringVar(&s.Second, "second", "", "file of the same codec that all paths play from -second-after on")
	flag.DurationVar(&s.SecondAfter, "second-after", 0, "time of the stream from which the -second file plays")
	flag.BoolVar(&s.Silent, "silent", false, "begin in silence, which SIGUSR1 ends")
	flag.StringVar(&s.User, "user", "", "user name that clients need; empty: none. RTSP_PASSWORD in the environment is the password")
	authentication := flag.String("authentication", "any", "any, basic, digest")
	flag.BoolVar(&s.UDP, "udp", false, "offer UDP and multicast too")
	flag.IntVar(&s.Faults.LosePacket, "lose-every", 0, "drop every n-th RTP packet")
	flag.Float64Var(&s.Faults.LoseFraction, "lose", 0, "drop this fraction of RTP packets, 0 to 1")
	flag.Uint64Var(&s.Faults.Seed, "seed", 1, "seed of -lose")
	flag.IntVar(&s.Faults.DamageUnit, "damage-every", 0, "damage every n-th access unit")
	flag.IntVar(&s.Faults.TruncateUnit, "truncate-every", 0, "truncate every n-th access unit")
	flag.DurationVar(&s.Faults.CloseAfter, "close-after", 0, "close connections this long after they began to play")
	flag.Usage = func() {
		_, _ = fmt.Fprintln(flag.CommandLine.Output(), "usage: rtsp-server [FLAG]... FILE...  (MPEG-TS with H.264 or H.265, or *.mjpeg)")
		flag.PrintDefaults()
	}
	flag.Parse()
	s.Files = flag.Args()
	s.Password = os.Getenv("RTSP_PASSWORD")
	var known bool
	if s.Parameters, known = map[string]rtsptest.Parameters{
		"everywhere": rtsptest.ParametersEverywhere, "sdp": rtsptest.ParametersInSDP, "in-band": rtsptest.ParametersInBand,
	}[*parameters]; !known {
		fail(2, fmt.Errorf("-parameters %s is unknown", *parameters))
	}
	if s.Authentication, known = map[string]rtsptest.Authentication{
		"any": rtsptest.AnyAuthentication, "basic": rtsptest.BasicAuthentication, "digest": rtsptest.DigestAuthentication,
	}[*authentication]; !known {
		fail(2, fmt.Errorf("-authentication %s is unknown", *authentication))
	}
	if err := run(&s); err != nil {
		fail(1, err)
	}
}

func fail(status int, err error) {
	fmt.Fprintln(os.Stderr, "rtsp-server:", err)
	os.Exit(status)
}

// run serves until SIGINT or SIGTERM, and then prints what happened on each path to standard error.
func run(s *rtsptest.Server) error {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGUSR1)
	if err := s.Start(); err != nil {
		return err
	}
	defer s.Close()
	fmt.Println(s.Listening())
	for silent := s.Silent; <-signals == syscall.SIGUSR1; {
		silent = !silent
		s.SetSilent(silent)
	}
	for number := range s.Paths {
		fmt.Fprintf(os.Stderr, "/%d: %+v\n", number, s.Stats(number))
	}
	return nil
}

package live

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/mp4/mp4test"
)

// BenchmarkVideo is the CPU time of server and viewer for one second of a camera of 1080p at 25 frames per second and 4 Mbit/s: 1 ms is
// 0.1 % of a core.
func BenchmarkVideo(b *testing.B) {
	units := mp4test.Encode(b, "libx264", 4, 2*time.Second, "-vf", "scale=1920:1080,noise=alls=20:allf=t", "-b:v", "4M", "-maxrate", "4M",
		"-bufsize", "4M")
	s := newVideoServer(b)
	conn := s.watch(b)
	s.ring.Store(&capture.Ring{Bytes: capture.KeptRingBytes})
	s.put(units[:1])
	for { // until the viewer is at the first unit
		_, data, err := conn.ReadMessage()
		if err != nil {
			b.Fatal(err)
		}
		if strings.Contains(string(data), "avc1") {
			break
		}
	}
	received, put := 0, 1
	begun := processTime(b)
	for b.Loop() {
		s.put(units)
		put += len(units)
		for received < put-1 { // the last one waits for the next
			kind, data, err := conn.ReadMessage()
			if err != nil {
				b.Fatal(err)
			}
			if kind == websocket.BinaryMessage && string(data[videoHeader+4:videoHeader+8]) == "moof" {
				received++
			}
		}
	}
	b.ReportMetric(float64((processTime(b)-begun).Microseconds())/float64(b.N)/4, "us/second")
}

// processTime is the CPU time of this process, which other processes do not disturb.
func processTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

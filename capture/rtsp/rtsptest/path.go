package rtsptest

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/bluenviron/gortsplib/v5"
	"github.com/bluenviron/gortsplib/v5/pkg/description"
	"github.com/bluenviron/gortsplib/v5/pkg/format"
	"github.com/pion/rtp"
)

// maxLate is how far a path may be behind its time, after the process or the machine was stopped, before the stream is interrupted: its
// timestamps then skip that time. What is late by less is sent at once, and fits into the clients' queues.
const maxLate = 10 * time.Second

// path plays a file to the clients of a path.
type path struct {
	server *Server
	number int
	media  *description.Media
	stream *gortsplib.ServerStream

	// goroutine of run only
	video    *video
	second   *video // nil when it is played, or without one
	index    int    // of the next unit
	base     int64  // stream time of the video's first unit, in ticks; the stream begins at 0
	highest  int64  // stream time of the newest image, in ticks
	sequence uint16
	random   *rand.Rand
	packets  int // since Start, for Faults
	units    int

	mu      sync.Mutex
	stats   Stats
	wantKey bool // nothing is sent before the next key frame
}

func newPath(s *Server, number int, v, second *video) (*path, error) {
	p := &path{server: s, number: number, video: v, second: second, random: rand.New(rand.NewPCG(s.Faults.Seed, uint64(number)))}
	p.index = v.offset(number, s.Paths)
	p.base = -v.units[p.index].dts
	p.sequence = uint16(p.random.Uint32())
	p.media = &description.Media{Type: description.MediaTypeVideo, Formats: []format.Format{p.format()}}
	p.stream = &gortsplib.ServerStream{Server: s.server, Desc: &description.Session{Medias: []*description.Media{p.media}}}
	if err := p.stream.Initialize(); err != nil {
		return nil, fmt.Errorf("path /%d: %w", number, err)
	}
	return p, nil
}

// format describes the video in the SDP.
func (p *path) format() format.Format {
	if p.server.Parameters == ParametersInBand {
		return p.video.codec.format(nil)
	}
	return p.video.codec.format(p.video.sets)
}

// duration converts ticks of the file to time of the stream.
func (p *path) duration(ticks int64) time.Duration {
	return time.Duration(float64(ticks) / p.server.Rate / ticksPerSecond * float64(time.Second))
}

// run sends each access unit at its time until the context ends. The paths' first units are spread over the time of a frame.
func (p *path) run(ctx context.Context, begin time.Time) {
	begin = begin.Add(p.duration(p.video.frame() * int64(p.number) / int64(p.server.Paths)))
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		u := p.next()
		wait := time.Until(begin.Add(p.duration(p.base + u.dts)))
		if wait < -maxLate {
			p.base += int64(-wait.Seconds() * p.server.Rate * ticksPerSecond)
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		p.highest = max(p.highest, p.base+u.pts)
		p.send(u, begin)
	}
}

// next returns the next unit and goes on.
func (p *path) next() *unit {
	if p.index == len(p.video.units) {
		p.index = 0
		p.base += p.video.length
	}
	if now := p.base + p.video.units[p.index].dts; p.second != nil && p.duration(now) >= p.server.SecondAfter {
		p.base = max(now, p.highest+p.video.frame()) // PTS increases also where the second file has fewer B-frames
		p.index = 0
		p.video, p.second = p.second, nil
		p.describe()
	}
	p.index++
	return &p.video.units[p.index-1]
}

// describe has the SDP describe the present video.
func (p *path) describe() {
	switch f := p.format().(type) {
	case *format.H264:
		described := p.media.Formats[0].(*format.H264)
		described.SPS = f.SPS
		described.PPS = f.PPS
	case *format.H265:
		described := p.media.Formats[0].(*format.H265)
		described.VPS = f.VPS
		described.SPS = f.SPS
		described.PPS = f.PPS
	}
	p.stream.ReloadDesc()
}

// sends reports whether a unit is sent.
func (p *path) sends(u *unit) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stats.Playing == 0 || p.server.silent.Load() || p.wantKey && !u.key {
		return false
	}
	p.wantKey = false
	p.stats.Units++
	return true
}

// send sends a unit to all clients, with the faults.
func (p *path) send(u *unit, begin time.Time) {
	if !p.sends(u) {
		return
	}
	p.units++
	payloads := u.payloads
	if parts := p.spoil(u.parts); parts != nil {
		payloads, _ = p.video.encode(parts) // JPEG that cannot be parsed is not sent
	}
	at := p.base + u.pts
	// An image was taken before any unit that depends on it was sent.
	taken := begin.Add(p.duration(at - p.video.reorder))
	var sent, lost uint64
	for i, payload := range payloads {
		p.sequence++
		if p.loses() {
			lost++
			continue
		}
		sent++
		packet := &rtp.Packet{Header: rtp.Header{
			Version: 2, PayloadType: p.media.Formats[0].PayloadType(), SequenceNumber: p.sequence,
			Timestamp: uint32(int64(float64(at) / p.server.Rate)), Marker: i == len(payloads)-1,
		}, Payload: payload}
		_ = p.stream.WritePacketRTPWithNTP(p.media, packet, taken) // fails when the stream is closed; slow clients are counted
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stats.Packets += sent
	p.stats.Lost += lost
}

// loses reports whether the next packet is dropped.
func (p *path) loses() bool {
	f := p.server.Faults
	p.packets++
	return f.LosePacket > 0 && p.packets%f.LosePacket == 0 || f.LoseFraction > 0 && p.random.Float64() < f.LoseFraction
}

// spoil returns a damaged or truncated copy of the present unit, nil if it is to remain as it is.
func (p *path) spoil(parts [][]byte) [][]byte {
	f := p.server.Faults
	damage := f.DamageUnit > 0 && p.units%f.DamageUnit == 0
	truncate := f.TruncateUnit > 0 && p.units%f.TruncateUnit == 0
	if !damage && !truncate {
		return nil
	}
	largest := 0
	for i, part := range parts {
		if len(part) > len(parts[largest]) {
			largest = i
		}
	}
	parts = slices.Clone(parts[:largest+1])
	part := bytes.Clone(parts[largest])
	if damage {
		for i := len(part) / 2; i < len(part); i += 16 { // behind the headers, so that the decoder has to find it
			part[i] ^= 0xff
		}
	}
	if truncate {
		part = part[:(len(part)+1)/2]
	}
	parts[largest] = part
	return parts
}

// join counts a client that plays from now on.
func (p *path) join() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stats.Playing == 0 {
		p.wantKey = !p.server.JoinAnywhere
	}
	p.stats.Playing++
}

func (p *path) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stats.Playing--
}

func (p *path) connected() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stats.Connections++
}

func (p *path) dropped() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stats.Dropped++
}

func (p *path) snapshot() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stats
}

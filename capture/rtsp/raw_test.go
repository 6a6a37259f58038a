package rtsp

import (
	"bytes"
	"fmt"
	"net/textproto"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pion/rtp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/capture/rtsp/rtsptest"
)

// Parts of descriptions.
const (
	owner     = "v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\ns=x\r\nt=0 0\r\n"
	h264Video = "m=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\na=fmtp:96 packetization-mode=1\r\na=control:track1\r\n"
)

// rawCamera starts a camera that answers with given texts.
func rawCamera(t *testing.T, r *rtsptest.Raw) *rtsptest.Raw {
	require.NoError(t, r.Start())
	t.Cleanup(r.Close)
	return r
}

// sendUnits sends key frames of one packet each until the client goes.
func sendUnits(send func(packet *rtp.Packet) error) {
	for number := range uint16(65535) {
		packet := &rtp.Packet{
			Header:  rtp.Header{Version: 2, PayloadType: 96, SequenceNumber: number, Timestamp: uint32(number) * 3000, Marker: true},
			Payload: []byte{0x65, byte(number)},
		}
		if send(packet) != nil {
			return
		}
	}
}

// TestLenient: descriptions and answers that other clients accept are accepted over one connection.
func TestLenient(t *testing.T) {
	const wrong = "m=application/MERCURY 0 RTP/AVP smart/1/90000\r\na=rtpmap:95 MERCURY/90000\r\n"
	for name, r := range map[string]*rtsptest.Raw{
		"usual":                      {SDP: owner + h264Video},
		"no version and owner":       {SDP: h264Video},
		"unusual owner":              {SDP: "v=0\r\no=- 1001 1 IN \r\ns=VCP\r\nc=IN \r\n" + h264Video},
		"other media that are wrong": {SDP: owner + "m=audio 0 RTP/AVP 116 115\r\na=rtpmap:116 MPEG4-GENERIC/64000\r\n" + h264Video + wrong},
		"line breaks without CR":     {SDP: strings.ReplaceAll(owner+h264Video, "\r", "")},
		"connection data twice":      {SDP: owner + strings.Replace(h264Video, "a=rtpmap", "c=IN c=IN IP4 0.0.0.0\r\na=rtpmap", 1)},
		"several formats":            {SDP: owner + strings.Replace(h264Video, "AVP 96", "AVP 96 97 96", 1)},
		"parameter sets that are none": {
			SDP: owner + strings.Replace(h264Video, "mode=1", "mode=1;sprop-parameter-sets=*,*", 1),
		},
		"all videos marked as back channels": {SDP: owner + h264Video + "a=sendonly\r\n"},
		"relative control of the session":    {SDP: owner + "a=control:track\r\n" + h264Video},
		"no content type":                    {SDP: owner + h264Video, Headers: map[string]string{"DESCRIBE": ""}},
		"empty content base":                 {SDP: owner + h264Video, Headers: map[string]string{"DESCRIBE": "Content-Base: \r\n"}},
		"no packetization mode":              {SDP: owner + strings.Replace(h264Video, "a=fmtp:96 packetization-mode=1\r\n", "", 1)},
		"no channels": {
			SDP: owner + h264Video, Headers: map[string]string{"SETUP": "Session: 1\r\nTransport: RTP/AVP/TCP;unicast\r\n"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r.Play = sendUnits
			c := rawCamera(t, r)
			s, err := open(t, c.URL())
			require.NoError(t, err)
			require.Equal(t, capture.H264, s.Codec())
			_, err = s.Serve()
			require.NoError(t, err)
			reader := s.Units()
			for number := range 3 {
				unit, err := reader.Next(t.Context())
				require.NoError(t, err)
				if number == 0 {
					require.True(t, unit.Key)
				}
			}
			assert.Equal(t, int32(1), c.Connections.Load())
		})
	}
}

// TestSecondVideo: the first video that is no back channel is read.
func TestSecondVideo(t *testing.T) {
	back := strings.Replace(h264Video, "H264", "H265", 1) + "a=sendonly\r\n"
	c := rawCamera(t, &rtsptest.Raw{SDP: owner + back + h264Video, Play: sendUnits})
	s, err := open(t, c.URL())
	require.NoError(t, err)
	assert.Equal(t, capture.H264, s.Codec())
}

// TestRefused: what this client cannot read is left to another one, with one line that says why.
func TestRefused(t *testing.T) {
	secure := strings.Replace(h264Video, "RTP/AVP", "RTP/SAVP", 1)
	for name, test := range map[string]struct {
		camera *rtsptest.Raw
		want   string
	}{
		"no SDP": {&rtsptest.Raw{SDP: "<html>"}, "invalid SDP: invalid line: (<html>)"},
		"no transport": {
			&rtsptest.Raw{SDP: owner + h264Video, Headers: map[string]string{"SETUP": "Session: 1\r\n"}},
			"invalid transport header: value not provided",
		},
		"unknown key management": {
			&rtsptest.Raw{SDP: owner + secure + "a=key-mgmt:sdes x\r\n"}, "invalid SDP: media 1 is invalid: unsupported key-mgmt: sdes x",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := rawCamera(t, test.camera)
			_, err := open(t, c.URL())
			require.ErrorIs(t, err, ErrRefused)
			assert.EqualError(t, err, "open "+c.URL()+": "+test.want)
		})
	}
}

// TestNewChallenge: a camera that wants the credentials again, by another challenge, is left to another client; wrong credentials are not.
func TestNewChallenge(t *testing.T) {
	var number atomic.Int32
	challenge := func() string {
		return fmt.Sprintf("WWW-Authenticate: Digest realm=\"x\", nonce=\"%d\"\r\n", number.Load())
	}
	r := &rtsptest.Raw{SDP: owner + h264Video, Headers: map[string]string{"SETUP": challenge()}}
	r.Headers["DESCRIBE"] = challenge()
	asked := ""
	r.Status = func(method string, header textproto.MIMEHeader) string {
		if method == "OPTIONS" || method == asked && header.Get("Authorization") != "" {
			return "200 OK"
		}
		return "401 Unauthorized"
	}
	c := rawCamera(t, r)
	address := strings.Replace(c.URL(), "rtsp://", "rtsp://me:secret@", 1)
	_, err := open(t, address)
	require.ErrorIs(t, err, capture.ErrDenied)
	require.NotErrorIs(t, err, ErrRefused)
	asked = "DESCRIBE"
	_, err = open(t, address)
	require.ErrorIs(t, err, ErrRefused)
	require.NotErrorIs(t, err, capture.ErrDenied)
	assert.ErrorContains(t, err, ": it wants the credentials again for each request")
}

// TestLargePackets: a camera that sends a key frame in one packet, over TCP, is served to decoders in packets of the usual size.
func TestLargePackets(t *testing.T) {
	for name, test := range map[string]struct {
		sdp   string
		frame []byte
	}{
		"H.264": {h264Video, append([]byte{0x65}, bytes.Repeat([]byte{7}, 60_000)...)},
		"H.265": {strings.ReplaceAll(h264Video, "H264", "H265"), append([]byte{0x26, 1}, bytes.Repeat([]byte{7}, 60_000)...)},
	} {
		t.Run(name, func(t *testing.T) {
			c := rawCamera(t, &rtsptest.Raw{SDP: owner + test.sdp, Play: func(send func(packet *rtp.Packet) error) {
				for number := uint16(65000); ; number++ {
					packet := &rtp.Packet{
						Header:  rtp.Header{Version: 2, PayloadType: 96, SequenceNumber: number, Timestamp: uint32(number) * 3000, Marker: true},
						Payload: test.frame,
					}
					if number%3 == 0 {
						packet.Payload = test.frame[:10]
					}
					if send(packet) != nil {
						return
					}
					time.Sleep(time.Millisecond)
				}
			}})
			_, r := relay(t, c.URL())
			s, err := open(t, r.Address())
			require.NoError(t, err)
			reader := s.Units()
			sizes := map[int]int{}
			var last time.Duration
			for number := range 12 {
				unit, err := reader.Next(t.Context())
				require.NoError(t, err)
				sizes[len(unit.Data)]++
				if number > 0 {
					assert.Equal(t, 33*time.Millisecond, (unit.PTS - last).Truncate(time.Millisecond))
				}
				last = unit.PTS
			}
			assert.Equal(t, map[int]int{len(startCode) + len(test.frame): 8, len(startCode) + 10: 4}, sizes)
		})
	}
}

// TestWithoutMarkers: the times of a camera that never marks the last packet of an image are those of the image.
func TestWithoutMarkers(t *testing.T) {
	c := rawCamera(t, &rtsptest.Raw{SDP: owner + h264Video, Play: func(send func(packet *rtp.Packet) error) {
		for number := range uint16(65535) {
			payload := []byte{0x65, byte(number / 2)}
			header := rtp.Header{Version: 2, PayloadType: 96, SequenceNumber: number, Timestamp: uint32(number/2) * 90_000}
			if send(&rtp.Packet{Header: header, Payload: payload}) != nil {
				return
			}
		}
	}})
	s, err := open(t, c.URL())
	require.NoError(t, err)
	reader := s.Units()
	for range 3 {
		unit, err := reader.Next(t.Context())
		require.NoError(t, err)
		image := unit.Data[len(unit.Data)-1]
		assert.Equal(t, time.Duration(image)*time.Second, unit.PTS, "image %d", image)
	}
}

// hostile are payloads of packets that a camera may send for ever, without completing an image or with nothing but parameter sets.
var hostile = map[string]struct {
	sdp     string
	payload func(number int) []byte
	marker  bool
}{
	"empty fragments of H.264": {h264Video, func(number int) []byte { return []byte{0x7c, start(number, 0x85, 0x05)} }, false},
	"empty fragments of H.265": {
		strings.ReplaceAll(h264Video, "H264", "H265"), func(number int) []byte { return []byte{0x62, 1, start(number, 0x93, 0x13)} }, false,
	},
	"large fragments": {h264Video, func(number int) []byte {
		return append([]byte{0x7c, start(number, 0x85, 0x05)}, make([]byte, 60_000)...)
	}, false},
	"JPEG fragments": {
		"m=video 0 RTP/AVP 26\r\n", func(int) []byte { return []byte{0, 0, 0, 0, 1, 64, 40, 30} }, false,
	},
	"empty JPEG fragments": {
		"m=video 0 RTP/AVP 26\r\n", func(number int) []byte {
			return append([]byte{0, 0, 0, start(number, 0, 1), 1, 64, 40, 30}, make([]byte, start(number, 1, 0))...)
		}, false,
	},
	"parameter sets": {h264Video, func(number int) []byte {
		return append([]byte{0x67, byte(number), byte(number >> 8)}, make([]byte, 60_000)...)
	}, true},
	"parameter sets in one image": {h264Video, func(number int) []byte { return []byte{0x67, byte(number), byte(number >> 8)} }, false},
}

// start returns first for the first packet, rest for the others.
func start(number int, first, rest byte) byte {
	if number == 0 {
		return first
	}
	return rest
}

// TestMemoryPerCamera: whatever a camera sends, what is kept of it is bounded.
func TestMemoryPerCamera(t *testing.T) {
	const most = 64 << 20
	for name, test := range hostile {
		t.Run(name, func(t *testing.T) {
			_, d := newDepacketizer(describe(t, owner+test.sdp))
			require.NotNil(t, d)
			ring := &capture.Ring{}
			before := memory()
			for number := range 3_000_000 {
				if number*len(test.payload(number)) > 1<<30 {
					break
				}
				// Each packet has memory of its own, as those of the library have.
				unit, complete := d.add(&rtp.Packet{
					Header:  rtp.Header{Version: 2, SequenceNumber: uint16(number), Marker: test.marker},
					Payload: bytes.Clone(test.payload(number)),
				})
				if complete {
					ring.Put(unit)
				}
				if number%200_000 == 0 {
					require.Less(t, memory()-before, int64(most), "after %d packets", number)
				}
			}
			require.Less(t, memory()-before, int64(most))
			runtime.KeepAlive(d)
			runtime.KeepAlive(ring)
		})
	}
}

// memory returns the bytes in use.
func memory() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

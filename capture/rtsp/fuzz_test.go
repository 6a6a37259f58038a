package rtsp

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"net/textproto"
	"strings"
	"testing"
	"time"

	"github.com/bluenviron/gortsplib/v5/pkg/description"
	"github.com/bluenviron/gortsplib/v5/pkg/format"
	"github.com/bluenviron/gortsplib/v5/pkg/sdpunmarshaler"
	"github.com/pion/rtp"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture"
)

// describe returns the video of a description as the client sees it.
func describe(t testing.TB, sdp string) *description.Media {
	parsed, err := sdpunmarshaler.Unmarshal(videoDescription([]byte(sdp)))
	require.NoError(t, err)
	var session description.Session
	require.NoError(t, session.Unmarshal2(parsed))
	return session.Medias[0]
}

// FuzzDescription: a description with video becomes one with a single media and format, which can be put together if the library reads it.
func FuzzDescription(f *testing.F) {
	f.Add([]byte(owner + h264Video + "a=sendonly\r\nm=audio 0 RTP/AVP 0\r\n"))
	f.Add([]byte("m=video 0 RTP/SAVP x 26\na=key-mgmt:mikey AQAFAP1td9ABAADbaAzoAAAAAA==\na=control:rtsp://h/x"))
	f.Add([]byte(owner + "m=video 0 RTP/AVP 96\r\na=rtpmap:96 H265/90000\r\na=fmtp:96 sprop-sps=QgE=;sprop-pps=RAE=;sprop-max-don-diff=1\r\n"))
	f.Add([]byte(owner + "m=video 0 RTP/AVP 97\r\na=rtpmap:97 x/0\r\n"))
	f.Fuzz(func(t *testing.T, sdp []byte) {
		made := videoDescription(sdp)
		if len(made) > 3*len(sdp)+200 {
			t.Fatalf("%d bytes of %d", len(made), len(sdp))
		}
		parsed, err := sdpunmarshaler.Unmarshal(made)
		var session description.Session
		if err != nil || session.Unmarshal2(parsed) != nil || bytes.Equal(made, sdp) {
			return
		}
		if len(session.Medias) != 1 || len(session.Medias[0].Formats) != 1 || session.Medias[0].IsBackChannel {
			t.Fatalf("%q became %q", sdp, made)
		}
		_, d := newDepacketizer(session.Medias[0])
		if d != nil {
			d.add(&rtp.Packet{Header: rtp.Header{Marker: true}, Payload: []byte{0x65, 1, 2, 3, 4, 5, 6, 7, 8}})
		}
	})
}

// packets makes packets of fuzzed bytes: of each, the first says what its header is, the second how long it is.
func packets(data []byte) (all []*rtp.Packet) {
	sequence, timestamp := uint16(0), uint32(0)
	for len(data) >= 2 {
		flags, length := data[0], int(data[1])
		data = data[2:]
		length = min(length<<(flags>>6), len(data)) // up to 2,040 bytes
		sequence += uint16(flags & 1)
		timestamp += uint32(flags>>1&1) * 3000
		sequence += uint16(flags >> 3 & 1)
		all = append(all, &rtp.Packet{
			Header:  rtp.Header{Version: 2, PayloadType: 96, SequenceNumber: sequence, Timestamp: timestamp, Marker: flags&4 != 0},
			Payload: bytes.Clone(data[:length]),
		})
		data = data[length:]
	}
	return all
}

// FuzzDepacketizer: no packets of a camera make a panic, a unit without data or one of more bytes than there were, or a packet that the
// library cannot send.
func FuzzDepacketizer(f *testing.F) {
	packed := func(flags byte, payloads ...string) (data []byte) {
		for i, payload := range payloads {
			last := byte(0)
			if i == len(payloads)-1 {
				last = 4
			}
			data = append(append(data, flags|last, byte(len(payload))), payload...)
		}
		return data
	}
	f.Add(uint8(0), packed(1, sps, pps, idr))
	f.Add(uint8(0), packed(1, "\x7c\x85abc", "\x7c\x05def", "\x7c\x45ghi"))               // fragments
	f.Add(uint8(0), packed(3, "\x78\x00\x02\x67a\x00\x02\x68b", idr))                     // aggregate, no markers
	f.Add(uint8(0), packed(1, "\x00\x00\x00\x01\x67a\x00\x00\x00\x01\x68b\x00\x00\x01e")) // Annex B
	f.Add(uint8(1), packed(1, vps5, sps5, pps5, idr5))
	f.Add(uint8(1), packed(1, "\x62\x01\x93abc", "\x62\x01\x13def", "\x62\x01\x53ghi"))
	f.Add(uint8(1), packed(1, "\x60\x01\x00\x03\x40\x01a\x00\x03\x42\x01b"))
	f.Add(uint8(2), packed(1, "\x00\x00\x00\x00\x01\x40\x28\x1eabcdef", "\x00\x00\x00\x06\x01\x40\x28\x1eabc"))
	f.Add(uint8(2), packed(1, "\x00\x00\x00\x00\x01\xff\x28\x1e\x00\x00\x00\x80"+strings.Repeat("q", 128)+"data"))
	f.Fuzz(func(t *testing.T, codec uint8, data []byte) {
		formats := []format.Format{
			&format.H264{PayloadTyp: 96, PacketizationMode: 1, SPS: []byte(sps), PPS: []byte(pps)}, &format.H265{PayloadTyp: 96}, &format.MJPEG{},
		}
		video := formats[int(codec)%len(formats)]
		_, d := newDepacketizer(&description.Media{Formats: []format.Format{video}})
		pack := newPacker(video, 0)
		received := 0
		sets := len(sps) + len(pps) + 2*len(startCode) + len(data) // what may be added to a key frame
		for _, packet := range packets(data) {
			received += len(packet.Payload) + 2*len(startCode)
			if pack != nil {
				for _, made := range pack.pack(packet) {
					if made.MarshalSize() > maxPacket {
						t.Fatalf("a packet of %d bytes", made.MarshalSize())
					}
				}
			}
			unit, complete := d.add(packet)
			if !complete {
				continue
			}
			header := 0
			if _, jpeg := d.(*jpegs); jpeg {
				header = 1024 // JPEG tables
			}
			if len(unit.Data) == 0 || len(unit.Data) > 2*received+sets+header {
				t.Fatalf("a unit of %d bytes after %d", len(unit.Data), received)
			}
		}
	})
}

// FuzzAccessUnit: the NAL units of a camera remain in their order, and a key frame has every parameter set that is known.
func FuzzAccessUnit(f *testing.F) {
	f.Add(false, []byte("\x02\x09e\x02\x67a\x02\x68b\x02\x65c"))
	f.Add(false, []byte("\x02\x06f\x02\x41d\x00\x02\x65c"))
	f.Add(true, []byte("\x03\x46\x01g\x03\x40\x01a\x03\x42\x01b\x03\x44\x01c\x03\x26\x01d"))
	f.Fuzz(func(t *testing.T, h265 bool, data []byte) {
		n := &nalUnits{kind: h264Kind, sets: [][]byte{[]byte(sps), nil}}
		if h265 {
			n = &nalUnits{kind: h265Kind, sets: [][]byte{[]byte(vps5), []byte(sps5), nil}}
		}
		var units [][]byte
		for len(data) > 0 {
			length := min(int(data[0]), len(data)-1)
			units = append(units, data[1:1+length])
			data = data[1+length:]
		}
		given := bytes.Join(withoutEmpty(append([][]byte{}, units...)), nil)
		unit, complete := n.join(units)
		if complete != (len(given) > 0) {
			t.Fatalf("%q: complete %t", given, complete)
		}
		if !complete {
			return
		}
		rest := unit.Data
		for _, kept := range withoutEmpty(units) {
			at := bytes.Index(rest, append([]byte(startCode), kept...))
			if at < 0 {
				t.Fatalf("%q is missing in %q", kept, unit.Data)
			}
			rest = rest[at+len(startCode)+len(kept):]
		}
		for _, set := range n.sets {
			if unit.Key && set != nil && !bytes.Contains(unit.Data, append([]byte(startCode), set...)) {
				t.Fatalf("the set %q is missing in %q", set, unit.Data)
			}
		}
	})
}

// FuzzCamera: whatever a camera answers and sends, the client ends, without a panic.
func FuzzCamera(f *testing.F) {
	const set = "RTSP/1.0 200 OK\r\nSession: 1;timeout=60\r\nTransport: RTP/AVP/TCP;unicast;interleaved=0-1"
	const play = "RTSP/1.0 200 OK\r\nSession: 1\r\nRTP-Info: url=x;seq=1;rtptime=0\r\n\r\n"
	const frames = "$\x00\x00\x0f\x80\xe0\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01\x65ab" +
		"$\x01\x00\x1c\x80\xc8\x00\x06\x00\x00\x00\x01\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00" +
		"$\x00\x00\x0e\x80\xe0\x00\x02\x00\x00\x00\x01\x00\x00\x00\x01\x41d"
	f.Add([]byte("200 OK\r\nContent-Type: application/sdp"), []byte(owner+h264Video), []byte(set), []byte(play+frames))
	f.Add([]byte("401 Unauthorized\r\nWWW-Authenticate: Digest realm=\"x\", nonce=\"y\""), []byte{}, []byte("RTSP/1.0 200 OK"),
		[]byte(play+frames))
	f.Add([]byte("302 Found\r\nLocation: rtsp://h/x"), []byte("x"), []byte("RTSP/1.0 461 Unsupported Transport"), []byte("$"))
	u, err := capture.ParseURI("rtsp://me:secret@192.0.2.1/x")
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, described, sdp, setup, stream []byte) {
		answers := [][]byte{
			[]byte("RTSP/1.0 200 OK\r\nPublic: DESCRIBE\r\n\r\n"),
			fmt.Appendf(nil, "RTSP/1.0 %s\r\nContent-Length: %d\r\n\r\n%s", described, len(sdp), sdp),
			append(setup, "\r\n\r\n"...),
			stream,
		}
		options := limits
		options.dial = func(context.Context, string, string) (net.Conn, error) {
			ours, camera := net.Pipe()
			go answer(camera, answers)
			return ours, nil
		}
		s, err := Open(t.Context(), u, options)
		if err != nil {
			return
		}
		if s.units != nil {
			reader := s.Units()
			for err = nil; err == nil; {
				_, err = reader.Next(t.Context())
			}
		}
		if s.Close() != nil {
			t.Fatal("not closed")
		}
	})
}

// answer answers one request after the other with the given bytes and closes the connection after the last, or when the client waits for
// the rest of an answer.
func answer(camera net.Conn, answers [][]byte) {
	defer camera.Close()
	requests := textproto.NewReader(bufio.NewReader(camera))
	for _, data := range answers {
		_, err := requests.ReadLine()
		if err != nil {
			return
		}
		_, err = requests.ReadMIMEHeader()
		if err != nil {
			return
		}
		_, err = camera.Write(data)
		if err != nil {
			return
		}
		_ = camera.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	}
}

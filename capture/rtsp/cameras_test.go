package rtsp

import (
	"encoding/base64"
	"net/textproto"
	"strings"
	"testing"

	"github.com/pion/rtp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/capture/rtsp/rtsptest"
)

// Parameter sets of real videos, 640x360.
const (
	sets264 = "sprop-parameter-sets=Z2QAFqy0BQF/y4CIAAADAAgAAAMA8HixdQ==,aO88sA=="
	sets265 = "sprop-vps=QAEMAf//AWAAAAMAkAAAAwAAAwA/lZQJ;sprop-sps=QgEBAWAAAAMAkAAAAwAAAwA/oAUCAXHy5ZWVKTC8BaAgAAADACAAAAMB4Q==;" +
		"sprop-pps=RAHAc8GJ"
)

// described are descriptions and headers in the forms of cameras, after public reports and manuals. HOST stands for the camera's address.
// None was tried with the camera itself.
var described = map[string]struct {
	codec      capture.Codec
	headers    string // of the description
	sdp        string
	withoutSet bool   // parameter sets come with the video only
	setup      string // the target that the video is set up at, without rtsp://HOST; that of FFmpeg
}{
	"Axis, absolute controls with a query": {
		codec: capture.H264, headers: "Content-Base: rtsp://HOST/axis-media/media.amp/", setup: "/axis-media/media.amp/trackID=1?videocodec=h264",
		sdp: `v=0
o=- 1216 1216 IN IP4 camera
s=Media Presentation
e=NONE
c=IN IP4 0.0.0.0
b=AS:50064
t=0 0
a=control:rtsp://HOST/axis-media/media.amp?videocodec=h264
a=range:npt=0.000000-
m=video 0 RTP/AVP 96
b=AS:50000
a=framerate:30.0
a=transform:1,0,0;0,1,0;0,0,1
a=control:rtsp://HOST/axis-media/media.amp/trackID=1?videocodec=h264
a=rtpmap:96 H264/90000
a=fmtp:96 packetization-mode=1; profile-level-id=420029; SETS264
m=audio 0 RTP/AVP 97
a=control:rtsp://HOST/axis-media/media.amp/trackID=2?videocodec=h264
a=rtpmap:97 mpeg4-generic/16000/1
a=fmtp:97 profile-level-id=15; mode=AAC-hbr;config=1408; SizeLength=13; IndexLength=3;IndexDeltaLength=3; Profile=1; bitrate=64000;
`,
	},
	"Axis, relative controls": {
		codec: capture.H264, headers: "Content-Base: rtsp://HOST/axis-media/media.amp/", setup: "/axis-media/media.amp/trackID=1",
		sdp: `v=0
o=- 1491 1491 IN IP4 192.0.2.1
s=Media Presentation
e=NONE
b=AS:50000
t=0 0
a=control:*
a=range:npt=0.000000-
m=video 0 RTP/AVP 96
c=IN IP4 0.0.0.0
b=AS:50000
a=framerate:30.0
a=transform:-1,0,0;0,-1,0;0,0,1
a=control:trackID=1
a=rtpmap:96 H264/90000
a=fmtp:96 packetization-mode=1; profile-level-id=420029; SETS264
`,
	},
	"Dahua, with audio in twenty forms to send": {
		codec: capture.H264, headers: "Cache-Control: must-revalidate\nContent-Base: rtsp://HOST/cam/realmonitor?channel=1&subtype=0/",
		setup: "/cam/realmonitor?channel=1&subtype=0/trackID=0",
		sdp: `v=0
o=- 2273421142 2273421142 IN IP4 0.0.0.0
s=Media Server
c=IN IP4 0.0.0.0
t=0 0
a=control:*
a=packetization-supported:DH
a=rtppayload-supported:DH
a=range:npt=now-
a=x-packetization-supported:IV
a=x-rtppayload-supported:IV
m=video 0 RTP/AVP 96
a=control:trackID=0
a=framerate:15.000000
a=rtpmap:96 H264/90000
a=fmtp:96 packetization-mode=1;profile-level-id=64002A;SETS264
a=recvonly
m=application 0 RTP/AVP 107
a=control:trackID=4
a=rtpmap:107 vnd.onvif.metadata/90000
a=recvonly
m=audio 0 RTP/AVP 116 115 97 0 8
a=control:trackID=5
a=rtpmap:116 MPEG4-GENERIC/64000
a=rtpmap:115 MPEG4-GENERIC/48000
a=rtpmap:97 MPEG2-GENERIC/8000
a=sendonly
`,
	},
	"Amcrest, an owner with a space": {
		codec: capture.H264, setup: "/video/trackID=0",
		sdp: `v=0
o=RTSP Session 0 0 IN IP4 0.0.0.0
s=Media Server
c=IN IP4 0.0.0.0
t=0 0
a=control:*
a=range:npt=now-
m=video 0 RTP/AVP 98
a=control:trackID=0
a=framerate:20.000000
a=rtpmap:98 H264/90000
a=fmtp:98 profile-level-id=4D001F;SETS264
`,
	},
	"Hikvision, information and headers of its own": {
		codec: capture.H264, headers: "Content-Base: rtsp://HOST/Streaming/Channels/101/",
		setup: "/Streaming/Channels/101/trackID=1?transportmode=unicast&profile=Profile_1",
		sdp: `v=0
o=- 1109162014219182 1109162014219192 IN IP4 192.0.2.1
s=Media Presentation
e=NONE
b=AS:5050
t=0 0
a=control:rtsp://HOST/Streaming/Channels/101/?transportmode=unicast&profile=Profile_1
m=video 0 RTP/AVP 96
b=AS:5000
a=recvonly
a=x-dimensions:1920,1080
a=control:rtsp://HOST/Streaming/Channels/101/trackID=1?transportmode=unicast&profile=Profile_1
a=rtpmap:96 H264/90000
a=fmtp:96 profile-level-id=420029; packetization-mode=1; SETS264
a=Media_header:MEDIAINFO=494D4B48010100000400000100000000000000000000000000000000000000000000000000000000;
a=appversion:1.0
`,
	},
	"Hikvision's recorder, audio without its format": {
		codec: capture.H264, setup: "/video/trackID=video", withoutSet: true,
		sdp: `v=0
o=- 1109162014219182 0 IN IP4 0.0.0.0
s=HIK Media Server V5.03.010
i=HIK Media Server Session Description : standard
e=NONE
c=IN IP4 0.0.0.0
b=AS:2080
t=0 0
a=control:*
a=range:npt=now-
m=video 0 RTP/AVP 96
i=Video Media
b=AS:2048
a=recvonly
a=control:trackID=video
a=rtpmap:96 H264/90000
a=fmtp:96 profile-level-id=4D0014;packetization-mode=0
m=audio 0 RTP/AVP 104
i=Audio Media
a=recvonly
a=control:trackID=audio
a=rtpmap:104 MPEG4-GENERIC/16000
a=fmtp:97 streamtype=5;mode=AAC-hbr;sizelength=13;indexlength=3;indexdeltalength=3;config=1408
a=Media_header:MEDIAINFO=494D4B48020100000400000101200210401F00000000000000000000000000000000000000000000;
a=appversion:1.0
`,
	},
	"Reolink, LIVE555 of 2013": {
		codec: capture.H264, headers: "Content-Base: rtsp://HOST/h264Preview_01_main/", setup: "/h264Preview_01_main/trackID=1",
		sdp: `v=0
o=- 1629795645777963 1 IN IP4 192.0.2.1
s=Session streamed by "preview"
i=h264Preview_01_main
t=0 0
a=tool:LIVE555 Streaming Media v2013.04.08
a=type:broadcast
a=control:*
a=range:npt=0-
a=x-qt-text-nam:Session streamed by "preview"
a=x-qt-text-inf:h264Preview_01_main
m=video 0 RTP/AVP 96
c=IN IP4 0.0.0.0
b=AS:500
a=rtpmap:96 H264/90000
a=fmtp:96 packetization-mode=1;profile-level-id=640033;SETS264
a=control:trackID=1
m=audio 0 RTP/AVP 97
c=IN IP4 0.0.0.0
b=AS:256
a=rtpmap:97 MPEG4-GENERIC/16000
a=fmtp:97 streamtype=5;profile-level-id=15;mode=AAC-hbr;sizelength=13;indexlength=3;indexdeltalength=3;config=1408;
a=control:trackID=2
`,
	},
	"TP-Link Tapo, a media of its own": {
		codec: capture.H265, headers: "Content-Base: rtsp://HOST/stream1/", setup: "/stream1/track1",
		sdp: `v=0
o=- 14665860 31787219 1 IN IP4 192.0.2.1
s=Session streamed by "TP-LINK RTSP Server"
t=0 0
a=smart_encoder:virtualIFrame=1
m=video 0 RTP/AVP 96
c=IN IP4 0.0.0.0
b=AS:4096
a=range:npt=0-
a=control:track1
a=rtpmap:96 H265/90000
a=fmtp:96 profile-space=0;profile-id=1;tier-flag=0;level-id=153;interop-constraints=000000000000;SETS265
m=audio 0 RTP/AVP 8
a=rtpmap:8 PCMA/8000
a=control:track2
m=application/tp-link 0 RTP/AVP smart/0/25000
a=rtpmap:95 tp-link/25000
a=control:track3
`,
	},
	"Foscam, a user name and a broken title": {
		codec: capture.H264, headers: "Content-Base: rtsp://HOST/11/\nx-Accept-Dynamic-Rate: 1", setup: "/11/trackID=0",
		sdp: `v=0
o=StreamingServer 3331435948 1116907222000 IN IP4 192.0.2.1
s=\11
c=IN IP4 0.0.0.0
b=AS:2056
t=0 0
a=range:npt=now-
a=control:*
m=video 0 RTP/AVP 96
b=AS:2048
a=control:trackID=0
a=rtpmap:96 H264/90000
a=fmtp:96 packetization-mode=1;profile-level-id=4D400C;SETS264
a=framesize:96 704-576
`,
	},
	"Uniview, nothing where addresses should be": {
		codec: capture.H264, setup: "/media/video1/video",
		sdp: `v=0
o=- 1001 1 IN
s=VCP IPC Realtime stream
m=video 0 RTP/AVP 105
c=IN
a=control:rtsp://HOST/media/video1/video
a=rtpmap:105 H264/90000
a=fmtp:105 profile-level-id=640032; packetization-mode=1; SETS264
a=recvonly
m=application 0 RTP/AVP 107
c=IN
a=control:rtsp://HOST/media/video1/metadata
a=rtpmap:107 vnd.onvif.metadata/90000
a=fmtp:107 DecoderTag=h3c-v3 RTCP=0
a=recvonly
`,
	},
	"Bosch, the static payload type 35": {
		codec: capture.H264, headers: "Content-Base: rtsp://HOST/rtsp_tunnel/", setup: "/rtsp_tunnel/stream=0",
		sdp: `v=0
o=- 0 0 IN IP4 192.0.2.1
s=LIVE VIEW
c=IN IP4 0.0.0.0
t=0 0
a=control:*
m=video 0 RTP/AVP 35
a=rtpmap:35 H264/90000
a=fmtp:35 packetization-mode=1;profile-level-id=4d4028;SETS264
a=control:stream=0
a=recvonly
m=application 0 RTP/AVP 98
a=rtpmap:98 vnd.onvif.metadata/90000
a=control:stream=1
`,
	},
	"Sony, empty connection data": {
		codec: capture.H264, setup: "/video/trackID=1",
		sdp: `v=0
o=- 1 1 IN IP4 192.0.2.1
s=media server
c=
t=0 0
m=video 0 RTP/AVP 105
a=rtpmap:105 H264/90000
a=control:trackID=1
a=fmtp:105 packetization-mode=1;SETS264
`,
	},
	"BZBGEAR, metadata as a media": {
		codec: capture.H264, setup: "/video/streamid=0",
		sdp: `v=0
o=- 0 0 IN IPV4 192.0.2.1
s=Unnamed
t=0 0
m=meta 0 RTP/AVP 98
a=control:streamid=2
m=video 0 RTP/AVP 96
a=rtpmap:96 H264/90000
a=fmtp:96 packetization-mode=1;SETS264
a=control:streamid=0
`,
	},
	"VStarcam, parameter sets that are none": {
		codec: capture.H264, setup: "/video/track0", withoutSet: true,
		sdp: `v=0
o=- 1 1 IN IP4 192.0.2.1
s=streaming
t=0 0
m=video 0 RTP/AVP 96
a=rtpmap:96 H264/90000
a=fmtp:96 packetization-mode=1;profile-level-id=00000d;sprop-parameter-sets=6QAAAA==,6QAAAA==
a=control:track0
`,
	},
	"mediamtx, an empty title": {
		codec: capture.H264, headers: "Content-Base: rtsp://HOST/mobile1/", setup: "/mobile1/trackID=0",
		sdp: "v=0\no=- 0 0 IN IP4 127.0.0.1\ns=\nc=IN IP4 0.0.0.0\nt=0 0\nm=video 0 RTP/AVP 96\na=control:trackID=0\na=rtpmap:96 H264/90000\n" +
			"a=fmtp:96 packetization-mode=1; profile-level-id=42C02A; SETS264\n",
	},
	"three lines": {
		codec: capture.H264, setup: "/video/trackID=0", withoutSet: true,
		sdp: "m=video 0 RTP/AVP 96\na=rtpmap:96 H264/90000\na=control:trackID=0\n",
	},
	"v4l2rtspserver, Motion JPEG with an empty format": {
		codec: capture.MJPEG, setup: "/video/track1", withoutSet: true,
		sdp: `v=0
o=- 1656233372976675 1 IN IP4 192.0.2.1
s=LIVE555 Streaming Media v2022.06.16
i=LIVE555 Streaming Media v2022.06.16
t=0 0
a=control:*
a=range:npt=now-
m=video 0 RTP/AVP 26
c=IN IP4 0.0.0.0
b=AS:500
a=fmtp:26 ` + `
a=x-dimensions:1280,960
a=control:track1
`,
	},
}

// describedCamera is a camera with such a description, which tells at what its video was set up.
func describedCamera(t *testing.T, headers, sdp string, play func(send func(packet *rtp.Packet) error)) (*rtsptest.Raw, <-chan string) {
	setups := make(chan string, 8)
	r := &rtsptest.Raw{Headers: map[string]string{}, Play: play}
	r.Requested = func(method, target string, _ textproto.MIMEHeader) {
		if method == "SETUP" {
			setups <- target
		}
	}
	c := rawCamera(t, r)
	host := strings.TrimSuffix(strings.TrimPrefix(c.URL(), "rtsp://"), "/video")
	fill := strings.NewReplacer("HOST", host, "SETS264", sets264, "SETS265", sets265, "\n", "\r\n")
	c.SetSDP(fill.Replace(sdp))
	if headers != "" {
		headers += "\n"
	}
	c.Headers["DESCRIBE"] = fill.Replace("Content-Type: application/sdp\n" + headers)
	delete(c.Headers, "SETUP")
	return c, setups
}

// TestDescriptionsOfCameras: each yields the video over one connection, which is set up where other clients do, with the parameter sets of
// the description in front of its key frames.
func TestDescriptionsOfCameras(t *testing.T) {
	for name, test := range described {
		t.Run(name, func(t *testing.T) {
			frame, payloadType := []byte("\x65abc"), uint8(96)
			if test.codec == capture.H265 {
				frame = []byte("\x26\x01abc")
			}
			if test.codec == capture.MJPEG {
				frame = append([]byte{0, 0, 0, 0, 1, 255, 40, 30, 0, 0, 0, 128}, make([]byte, 200)...)
			}
			if _, after, found := strings.Cut(test.sdp, "m=video 0 RTP/AVP "); found {
				payloadType = payloadNumber(t, after)
			}
			c, setups := describedCamera(t, test.headers, test.sdp, func(send func(packet *rtp.Packet) error) {
				for number := uint16(0); ; number++ {
					header := rtp.Header{Version: 2, PayloadType: payloadType, SequenceNumber: number, Timestamp: uint32(number) * 3000, Marker: true}
					if send(&rtp.Packet{Header: header, Payload: frame}) != nil {
						return
					}
				}
			})
			s, err := open(t, c.URL())
			require.NoError(t, err)
			require.Equal(t, test.codec, s.Codec())
			unit, err := s.Units().Next(t.Context())
			require.NoError(t, err)
			require.True(t, unit.Key)
			if !test.withoutSet {
				for _, set := range setsOf(t, test.codec) {
					assert.Contains(t, string(unit.Data), startCode+set)
				}
			}
			assert.Equal(t, strings.TrimSuffix(c.URL(), "/video")+test.setup, <-setups)
			assert.Equal(t, int32(1), c.Connections.Load())
		})
	}
	assert.GreaterOrEqual(t, len(described), 10)
}

// payloadNumber returns the number that a text begins with.
func payloadNumber(t *testing.T, text string) (number uint8) {
	line, _, _ := strings.Cut(text, "\n")
	for _, digit := range strings.Fields(line)[0] {
		require.True(t, digit >= '0' && digit <= '9', line)
		number = number*10 + uint8(digit-'0')
	}
	return number
}

// setsOf returns the parameter sets of a codec's descriptions.
func setsOf(t *testing.T, codec capture.Codec) (sets []string) {
	text := sets264
	if codec == capture.H265 {
		text = sets265
	}
	for _, field := range strings.FieldsFunc(text, func(r rune) bool { return r == ';' || r == ',' }) {
		_, value, found := strings.Cut(field, "=")
		if !found || !strings.HasPrefix(field, "sprop-") {
			value = field
		}
		set, err := base64.StdEncoding.DecodeString(value)
		require.NoError(t, err)
		sets = append(sets, string(set))
	}
	return sets
}

package capture

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/engine"
)

func TestParseURI(t *testing.T) {
	for text, want := range map[string]URI{
		"0":                                     {Kind: Device, Address: "/dev/video0"},
		" 2 ":                                   {Kind: Device, Address: "/dev/video2"},
		"0?width=640&height=480&fps=15":         {Kind: Device, Address: "/dev/video0", Width: 640, Height: 480, FPS: 15},
		"/dev/video1?format=MJPEG":              {Kind: Device, Address: "/dev/video1", Encoding: "mjpeg"},
		"v4l2:///dev/video3?format=yuyv":        {Kind: Device, Address: "/dev/video3", Encoding: "yuyv"},
		"v4l2://4":                              {Kind: Device, Address: "/dev/video4"},
		"v4l2:///dev/v4l/by-id/cam":             {Kind: Device, Address: "/dev/v4l/by-id/cam"},
		"csi://":                                {Kind: CSI, Address: "0", Mode: -1},
		"csi://1?mode=2&flip=6&fps=29.97":       {Kind: CSI, Address: "1", Mode: 2, Flip: 6, FPS: 29.97},
		"rtsp://u:p@cam:554/s?channel=1":        {Kind: RTSP, Address: "rtsp://u:p@cam:554/s?channel=1"},
		"rtsp://cam/s#decoder=software":         {Kind: RTSP, Address: "rtsp://cam/s", Decoder: "software"},
		"rtsp://cam/s#decoder=nvmm&latency=low": {Kind: RTSP, Address: "rtsp://cam/s", Decoder: "nvmm", LowLatency: true},
		"RTSPS://cam/s":                         {Kind: RTSP, Address: "RTSPS://cam/s"},
		"http://cam/video":                      {Kind: HTTP, Address: "http://cam/video"},
		"https://[::1]:8443/video":              {Kind: HTTP, Address: "https://[::1]:8443/video"},
		"belt.mp4":                              {Kind: File, Address: "belt.mp4"},
		"what?.mp4":                             {Kind: File, Address: "what?.mp4"},
		"/data/images":                          {Kind: File, Address: "/data/images"},
		"file:///data/a%20b.mp4?loop=1&fps=2.5": {Kind: File, Address: "/data/a b.mp4", Loop: true, FPS: 2.5},
		"gst:videotestsrc ! videoconvert":       {Kind: Pipeline, Address: "videotestsrc ! videoconvert"},
		"demo":                                  {Kind: Demo},
		"demo://?seed=-4":                       {Kind: Demo, Seed: -4},
		"demo?width=640&height=360&fps=60&frames=9": {Kind: Demo, Width: 640, Height: 360, FPS: 60, Frames: 9},
	} {
		t.Run(text, func(t *testing.T) {
			got, err := ParseURI(text)
			require.NoError(t, err)
			assert.Equal(t, want, got)
		})
	}
}

func TestParseURIErrors(t *testing.T) {
	const usage = " (give a device number, /dev/videoN, csi://N, rtsp://, http://, a file, a directory, gst:PIPELINE or demo)"
	for text, want := range map[string]string{
		"":                          "parse: empty camera URI" + usage,
		"ftp://cam/x":               "parse ftp://cam/x: unknown scheme ftp://" + usage,
		"300":                       "parse 300: device number 300 is out of range (V4L2 has /dev/video0 to /dev/video255)",
		"v4l2://camera":             "parse v4l2://camera: not a device path (for instance v4l2:///dev/video0)",
		"csi://left":                `parse csi://left: sensor number "left" is not a number (for instance csi://0)`,
		"rtsp://":                   "parse rtsp://: URL without a host",
		"rtsp://cam/s#latency=high": `parse rtsp://cam/s#latency=high: latency "high" is not low`,
		"rtsp://cam/s#decoder=x":    `parse rtsp://cam/s#decoder=x: decoder "x" is unknown (known: nvdec, nvmm, hardware, software)`,
		"rtsp://u:p/a%zz@cam/s":     "parse rtsp://***@cam/s: not a valid URL (percent-encode special characters of the user name and password)",
		"http://u:p#w@cam/s":        "parse http://***@cam/s: not a valid URL (percent-encode special characters of the user name and password)",
		"gst: ":                     "parse gst:: empty pipeline (for instance gst:videotestsrc ! videoconvert)",
		"demo?color=red":            `parse demo?color=red: unknown parameter "color" (known: width, height, fps, seed, frames)`,
		"demo?width=10&height=10":   `parse demo?width=10&height=10: height "10" is not a whole number of 64 to 8192`,
		"demo?width=640":            "parse demo?width=640: width and height go together",
		"demo?fps=0":                `parse demo?fps=0: fps "0" is not a number over 0 and up to 1000`,
		"demo?fps=NaN":              `parse demo?fps=NaN: fps "NaN" is not a number over 0 and up to 1000`,
		"demo?fps=1&fps=2":          "parse demo?fps=1&fps=2: parameter fps is given twice",
		"demo?a=%zz":                "parse demo?a=%zz: malformed parameters (write them as name=value&name=value)",
		"demo?seed=x":               `parse demo?seed=x: seed "x" is not a whole number`,
		"0?width=99999&height=10":   `parse 0?width=99999&height=10: width "99999" is not a whole number of 2 to 32768`,
		"0?format=h264":             `parse 0?format=h264: format "h264" is neither yuyv nor mjpeg`,
		"file://?loop=1":            "parse file://?loop=1: not a file path (for instance file:///var/lib/video.mp4)",
		"file:///a?loop=maybe":      `parse file:///a?loop=maybe: loop "maybe" is neither 0 nor 1`,
		"a\x00b":                    "parse a\x00b: camera URI contains a zero byte",
	} {
		t.Run(text, func(t *testing.T) {
			_, err := ParseURI(text)
			require.ErrorIs(t, err, ErrURI)
			assert.EqualError(t, err, want)
		})
	}
}

func TestRedact(t *testing.T) {
	for text, want := range map[string]string{
		"rtsp://cam/s":                                                "rtsp://cam/s",
		"rtsp://admin:p@ss@cam:554/s":                                 "rtsp://***@cam:554/s",
		"rtsp://admin@cam/s":                                          "rtsp://***@cam/s",
		"rtsp://admin:p/ss@cam/s":                                     "rtsp://***@cam/s",
		"http://cam/user@home":                                        "http://cam/user@home",
		"http://cam:80/user@home":                                     "http://cam:80/user@home",
		"http://[::1]:80/user@home":                                   "http://[::1]:80/user@home",
		"http://cam/v?user=me&pwd=x&size=2":                           "http://cam/v?user=***&pwd=***&size=***",
		"http://cam/v?access_token=abc":                               "http://cam/v?access_token=***",
		`rtspsrc location="rtsp://a:b@c/d" ! x`:                       `rtspsrc location="rtsp://***@c/d" ! x`,
		"souphttpsrc user-id=me user-pw=secret location=http://c ! x": "souphttpsrc user-id=*** user-pw=*** location=http://c ! x",
		"demo": "demo",
	} {
		assert.Equal(t, want, Redact(text), text)
	}
}

func FuzzParseURI(f *testing.F) {
	for _, seed := range []string{
		"0", "/dev/video0?width=1&height=2", "csi://0?mode=1", "rtsp://u:hunter2@h/p", "http://h/?token=hunter2", "file:///a?loop=1", "gst:a ! b",
		"demo?width=640&height=480", "://", "rtsp://u:hunter2/x@h", "%", "demo?%zz",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		u, err := ParseURI(text)
		_ = u.String()
		if err != nil {
			if !errors.Is(err, ErrURI) {
				t.Fatal(err)
			}
			return
		}
		if u.Address == "" && u.Kind != Demo || !(u.FPS >= 0) || min(u.Width, u.Height) < 0 || max(u.Width, u.Height) > engine.MaxSide {
			t.Fatalf("%+v", u)
		}
	})
}

// FuzzRedact puts a password where the URL syntax wants it and asks that it never comes out again.
func FuzzRedact(f *testing.F) {
	f.Add("admin", "camera/stream")
	f.Add("a/b", "x?y=z")
	f.Add("", "")
	f.Fuzz(func(t *testing.T, user, path string) {
		if strings.ContainsAny(user, " \t\r\n\"':/") || strings.ContainsAny(path, " \t\r\n\"'@") || strings.Contains(user+path, "hunter2") {
			return
		}
		if shown := Redact("rtsp://" + user + ":hunter2@camera/" + path); strings.Contains(shown, "hunter2") {
			t.Fatal(shown)
		}
	})
}

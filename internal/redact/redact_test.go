package redact

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestText(t *testing.T) {
	for text, want := range map[string]string{
		"rtsp://cam/s":                                 "rtsp://cam/s",
		"rtsp://cam:554/s":                             "rtsp://cam:554/s",
		"rtsp://admin:p@ss@cam:554/s":                  "rtsp://***@cam:554/s",
		"rtsp://admin@cam/s":                           "rtsp://***@cam/s",
		"rtsp://admin:my secret@cam/s":                 "rtsp://***@cam/s",
		"rtsp://admin:12 34@cam":                       "rtsp://***@cam",
		"rtsp://admin:12/34@cam/s":                     "rtsp://***@cam/s",
		"rtsp://admin:12/34@192.0.2.1":                 "rtsp://***@192.0.2.1",
		"rtsp://admin:a@b/c@cam":                       "rtsp://***@cam",
		"rtsp://admin:a@b?c@cam/s":                     "rtsp://***@cam/s",
		"rtsp://admin:12?x=34@cam/s":                   "rtsp://***@cam/s",
		`rtsp://admin:a"b'c@cam/s`:                     "rtsp://***@cam/s",
		"rtsp://admin:pa":                              "rtsp://***", // YAML ended it at " #"
		"rtsp://admin:pa #ss@cam/s":                    "rtsp://***@cam/s",
		"rtsp://admin:a,tcp://b@cam/s":                 "rtsp://***@cam/s",
		"front=rtsp://admin:my secret@cam/s":           "front=rtsp://***@cam/s",
		`camera "rtsp://admin:my secret@cam/s": 401`:   `camera "rtsp://***@cam/s": 401`,
		`camera "rtsp://admin:a\"b@cam/s": 401`:        `camera "rtsp://***@cam/s": 401`,
		"camera rtsp://admin:my secret@cam/s: 401":     "camera rtsp://***@cam/s: 401",
		"camera rtsp://admin:a b:c@cam/s: 401":         "camera rtsp://***@cam/s: 401",
		"broker tcp://host:1883: refused":              "broker tcp://host:1883: refused",
		"broker tcp://host:1883, tls://u:p@h: refused": "broker tcp://host:1883, tls://***@h: refused",
		"tcp://a:1883,tcp://u:p@b":                     "tcp://a:1883,tcp://***@b",
		"triton=grpc://a:8001/m,b:8001/m":              "triton=grpc://a:8001/m,b:8001/m",
		"triton=grpc://a:8001/m,grpc://b:8001/m":       "triton=grpc://a:8001/m,grpc://b:8001/m",
		"http://cam/user@home":                         "http://cam/user@home",
		"http://cam:80/user@home":                      "http://cam:80/user@home",
		"http://[::1]:80/user@home":                    "http://[::1]:80/user@home",
		"http://u:p@cam/v?mail=me@home":                "http://***@cam/v?mail=***",
		"http://cam/v?user=me&pwd=x&size=2":            "http://cam/v?user=***&pwd=***&size=***",
		"http://cam/v?loginpas=a b&psw=c;sid=d":        "http://cam/v?loginpas=***&psw=***&sid=***",
		"http://cam/v?session=a&authbasic=b":           "http://cam/v?session=***&authbasic=***",
		"http://cam/v?c2VjcmV0":                        "http://cam/v?***",
		"http://cam/v?next=http://c2VjcmV0/x":          "http://cam/v?next=***",
		"get http://cam/v?x=y: not found":              "get http://cam/v?x=*** not found",
		"rtsp://cam/s?channel=1#transport=udp&x=y":     "rtsp://cam/s?channel=***#transport=udp&x=***",
		"csi://0?mode=1&flip=2":                        "csi://0?mode=1&flip=2",
		"file:///a?loop=1&key=2":                       "file:///a?loop=1&key=***",
		"demo?width=640&height=480":                    "demo?width=640&height=480",
		`rtspsrc location="rtsp://a:b@c/d" ! x`:        `rtspsrc location="rtsp://***@c/d" ! x`,
		"souphttpsrc location=http://c/?sid=1 ! x":     "souphttpsrc location=http://c/?sid=*** ! x",
		"souphttpsrc user-id=me user-pw=secret ! x":    "souphttpsrc user-id=*** user-pw=*** ! x",
		"loginpas=a psw=b sid=c session=d authbasic=e": "loginpas=*** psw=*** sid=*** session=*** authbasic=***",
		"://": "://",
	} {
		assert.Equal(t, want, Text(text), text)
	}
}

// FuzzText puts a secret into user and password, or into the value of a query, and requires that it never comes out again.
func FuzzText(f *testing.F) {
	f.Add("admin:", "", "stream", "x=", "&y=1")
	f.Add("admin:a b/c?d#e@f\"g'h", "12 34", "s?x=y", "a=1&b=", " c")
	f.Add("a/b", ":c", "", "", "")
	f.Fuzz(func(t *testing.T, before, after, path, query, more string) {
		const secret = "hunter-2-forty-two"
		if strings.Contains(before+after, "://") || strings.ContainsAny(path, "@") {
			return // another address, or another user
		}
		check := func(address string) {
			for _, text := range []string{address, "cam=" + address, "open " + strconv.Quote(address) + ": refused"} {
				if shown := Text(text); strings.Contains(shown, secret) {
					t.Fatalf("%q -> %q", text, shown)
				}
			}
		}
		check("rtsp://" + before + secret + after + "@camera/" + path)
		if strings.Contains(query, "&") || strings.Contains(query, ";") || strings.Contains(query, "#") {
			return
		}
		check("http://camera/video?a=b&" + query + "=" + secret + more)
		check("http://camera/video?" + secret + strings.ReplaceAll(more, "=", ""))
	})
}

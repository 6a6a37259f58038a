package onvif

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/onvif/onviftest"
)

const password = `p@ss "<word>`

var login = Login{User: "viewer", Password: password}

// start starts a camera.
func start(t *testing.T, c *onviftest.Camera) *onviftest.Camera {
	c.Start()
	t.Cleanup(c.Close)
	return c
}

// run asks cameras by their addresses and returns the result and what is printed.
func run(t *testing.T, d *Discovery) (*Result, string, error) {
	r, err := d.Run(t.Context())
	var text strings.Builder
	require.NoError(t, r.Print(&text))
	assert.NotContains(t, text.String(), password)
	assert.NotContains(t, fmt.Sprintf("%+v", r), password)
	return r, text.String(), err
}

const twoStreams = `cameras:
  # Stand-In X1 Pro at http://@/onvif/device_service, firmware 1.2
  - name: x1-pro
    uri: "rtsp://${CAMERA_USER}:${CAMERA_PASSWORD}@127.0.0.1:554/sub?a=1&b=2" # Sub: H264 640x360, 15 fps
    record: "rtsp://${CAMERA_USER}:${CAMERA_PASSWORD}@127.0.0.1:554/main?a=1&b=2" # Main "stream": H264 2560x1440, 25 fps
`

// TestStreams: cameras of all kinds of login, clock and service give their streams.
func TestStreams(t *testing.T) {
	const clock = "  # its clock is wrong by -2h0m0s: the time of its images will be that of their arrival\n"
	for name, test := range map[string]struct {
		camera *onviftest.Camera
		want   string
	}{
		"token": {&onviftest.Camera{User: login.User, Password: password}, twoStreams},
		"token, wrong clock": {
			&onviftest.Camera{User: login.User, Password: password, Skew: -2 * time.Hour},
			strings.Replace(twoStreams, "  - name", clock+"  - name", 1),
		},
		"digest":          {&onviftest.Camera{User: login.User, Password: password, Digest: true}, twoStreams},
		"no login wanted": {&onviftest.Camera{}, twoStreams},
		"no GetServices":  {&onviftest.Camera{User: login.User, Password: password, Digest: true, Former: true}, twoStreams},
		"second media service": {&onviftest.Camera{User: login.User, Password: password, Media20: true}, `cameras:
  # Stand-In X1 Pro at http://@/onvif/device_service, firmware 1.2
  - name: x1-pro
    uri: "rtsp://${CAMERA_USER}:${CAMERA_PASSWORD}@192.0.2.7:554/main" # Main: H265 3840x2160, 12.5 fps
`},
		"second media service fails": {
			&onviftest.Camera{Media20: true, Answers: map[string]string{"GetProfiles": "<x/>"}},
			"# Stand-In X1 Pro at http://@/onvif/device_service, firmware 1.2: it offers no RTSP stream\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := start(t, test.camera)
			_, text, err := run(t, &Discovery{Addresses: []string{c.Host()}, Login: login})
			assert.Equal(t, strings.ReplaceAll(test.want, "@/", c.Host()+"/"), strings.ReplaceAll(text, "@/", c.Host()+"/"))
			if strings.HasPrefix(text, "cameras:") {
				require.NoError(t, err)
			} else {
				require.EqualError(t, err, "no camera has given a stream")
			}
		})
	}
}

// TestLogin: a refused or missing login is reported, after few attempts because cameras lock accounts, and a person is asked once.
func TestLogin(t *testing.T) {
	for _, digest := range []bool{false, true} {
		c := start(t, &onviftest.Camera{User: login.User, Password: password, Digest: digest})
		ask := func(d *Discovery) string {
			d.Addresses = []string{c.Host()}
			r, _, err := run(t, d)
			if err == nil {
				require.Len(t, r.Cameras[0].Profiles, 2)
			}
			return r.Cameras[0].Reason
		}
		assert.Equal(t, "it requires a user name and password (set CAMERA_USER and CAMERA_PASSWORD)", ask(&Discovery{}))
		c.Refused.Store(0)
		assert.Equal(t, "it refuses the user name or password (correct CAMERA_USER and CAMERA_PASSWORD; "+
			"some cameras have users of ONVIF's own)", ask(&Discovery{Login: Login{User: "viewer", Password: "wrong"}}))
		assert.LessOrEqual(t, c.Refused.Load(), int32(3))
		asked := 0
		assert.Empty(t, ask(&Discovery{AskLogin: func() (Login, error) {
			asked++
			return login, nil
		}}))
		assert.Equal(t, 1, asked)
	}
}

// TestHostileAnswers: what a camera answers neither stops the program nor gets into the configuration as anything but a text.
func TestHostileAnswers(t *testing.T) {
	uri := func(text string) map[string]string {
		return map[string]string{"GetStreamUri": "<r:GetStreamUriResponse><MediaUri><Uri>" + text + "</Uri></MediaUri></r:GetStreamUriResponse>"}
	}
	for name, test := range map[string]struct {
		answers map[string]string
		want    string // in the text
	}{
		"references":       {uri("rtsp://192.0.2.1/x?${file:/etc/passwd}"), `@192.0.2.1/x?$${file:/etc/passwd}" #`},
		"parameters":       {uri("rtsp://192.0.2.1/x#certificate=insecure"), `@192.0.2.1/x" #`},
		"its own password": {uri("rtsp://admin:tops@192.0.2.1/x"), `"rtsp://${CAMERA_USER}:${CAMERA_PASSWORD}@192.0.2.1/x" #`},
		"password in the query": {
			uri("rtsp://192.0.2.1/x?user=admin&amp;password=tops"), `@192.0.2.1/x?user=***&password=***" #`,
		},
		"no RTSP":   {uri("file:///etc/passwd"), `profile Sub: the camera gives no RTSP address`},
		"no answer": {map[string]string{"GetStreamUri": "<x"}, `profile Sub: the answer is not a SOAP message`},
		"too much":  {map[string]string{"GetProfiles": strings.Repeat("<x/>", maxAnswer/4)}, "the answer has more than 1048576 bytes"},
		"too deep":  {map[string]string{"GetProfiles": strings.Repeat("<x>", 100_000)}, "the answer is not a SOAP message"},
		"lines": {
			map[string]string{"GetDeviceInformation": "<r:GetDeviceInformationResponse><Model>a\n  - uri: demo&#x202e;</Model>" +
				"</r:GetDeviceInformationResponse>"},
			"  # a - uri: demo at",
		},
		"no media service": {map[string]string{"GetServices": "<x/>", "GetCapabilities": "<x/>"}, ": it has no media service"},
		"fault": {
			map[string]string{"GetProfiles": "<s:Fault><faultcode>s:Server</faultcode><faultstring>out of\nmemory</faultstring></s:Fault>"},
			": the camera reports s:Server out of memory",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := start(t, &onviftest.Camera{Answers: test.answers})
			r, text, _ := run(t, &Discovery{Addresses: []string{c.Host()}, Login: login})
			assert.Contains(t, text, test.want)
			assert.NotContains(t, text, "tops")
			assert.LessOrEqual(t, len(r.Cameras[0].Profiles), maxProfiles)
		})
	}
}

// TestOtherServers: what is no ONVIF camera is reported in one line.
func TestOtherServers(t *testing.T) {
	page := httptest.NewServer(http.NotFoundHandler())
	defer page.Close()
	moved := httptest.NewServer(http.RedirectHandler("http://203.0.113.1/", http.StatusMovedPermanently))
	defer moved.Close()
	gone := httptest.NewServer(nil)
	gone.Close()
	basic := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Empty(t, r.Header.Get("Authorization"))
		w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer basic.Close()
	for address, want := range map[string]string{
		basic.URL: "the camera wants the password in clear or by an unknown method (choose digest authentication for ONVIF in its settings)",
		page.URL:  "the camera answers 404 Not Found",
		moved.URL: "the camera answers 301 Moved Permanently",
		gone.URL:  "connection refused",
	} {
		r, _, err := run(t, &Discovery{Addresses: []string{address}, Login: login})
		require.EqualError(t, err, "no camera has given a stream")
		assert.Equal(t, want, r.Cameras[0].Reason)
	}
	for _, address := range []string{"ftp://192.0.2.1", "http://", "a b", "http://192.0.2.1:x/"} {
		_, _, err := run(t, &Discovery{Addresses: []string{address}})
		require.EqualError(t, err, fmt.Sprintf("camera %q: not a host name, an IP address or an http:// address", address))
	}
}

// TestCameraThatHangs: the time for a camera is bounded; here the context's is shorter.
func TestCameraThatHangs(t *testing.T) {
	stop := make(chan struct{})
	hanging := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-stop }))
	defer hanging.Close()
	defer close(stop)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	service, err := deviceService(hanging.URL)
	require.NoError(t, err)
	assert.Equal(t, "no answer in time", query(ctx, target{service: service}, login).Reason)
}

// TestNames: cameras of one model have different names.
func TestNames(t *testing.T) {
	cameras := []Camera{{Model: "DS-2CD (2)"}, {Model: "ds-2cd_2"}, {}, {Model: "日本"}, {Model: "camera 2"}}
	setNames(cameras)
	var names []string
	for _, c := range cameras {
		names = append(names, c.Name)
	}
	assert.Equal(t, []string{"ds-2cd-2", "ds-2cd-2-2", "camera", "camera-2", "camera-2-2"}, names)
}

// TestSuggested: the smallest stream that is wide enough, or else the largest.
func TestSuggested(t *testing.T) {
	for _, test := range []struct {
		widths []int
		want   int
	}{{[]int{0}, 0}, {[]int{1920, 640, 320}, 1}, {[]int{320, 1920, 2560}, 1}, {[]int{320, 352, 176}, 1}, {[]int{640, 640}, 0}, {
		[]int{0, 0},
		0,
	}} {
		var profiles []Profile
		for _, width := range test.widths {
			profiles = append(profiles, Profile{Width: width, Height: width})
		}
		assert.Equal(t, test.want, suggested(profiles), "%v", test.widths)
	}
}

// loopback is the interface of loopback for multicast.
func loopback(t *testing.T) *net.Interface {
	all, err := net.Interfaces()
	require.NoError(t, err)
	for i := range all {
		if all[i].Flags&net.FlagLoopback != 0 {
			return &all[i]
		}
	}
	t.Skip("no loopback interface")
	return nil
}

// TestProbe: a camera is found by multicast, once although it answers each probe, and asked at the address that its answer came from.
func TestProbe(t *testing.T) {
	lo := loopback(t)
	listening, err := net.ListenMulticastUDP("udp4", lo, &net.UDPAddr{IP: net.IPv4(239, 255, 255, 250)})
	if err != nil {
		t.Skip("no multicast on loopback: " + err.Error())
	}
	defer listening.Close()
	c := start(t, &onviftest.Camera{User: login.User, Password: password, Digest: true})
	go func() {
		datagram := make([]byte, 64<<10)
		for {
			n, from, err := listening.ReadFromUDP(datagram)
			if err != nil {
				return
			}
			_, _ = listening.WriteToUDP([]byte("no XML"), from)
			_, _ = listening.WriteToUDP(c.Answer(datagram[:n]), from)
		}
	}()
	interfaces := []localInterface{
		{"lo", lo.Index, netip.MustParseAddr("127.0.0.1")},
		{"gone", 1 << 30, netip.MustParseAddr("127.0.0.1")}, // its failure does not matter
	}
	port := listening.LocalAddr().(*net.UDPAddr).Port
	group := netip.AddrPortFrom(discoveryGroup.Addr(), uint16(port))
	r, text, err := run(t, &Discovery{Login: login, interfaces: interfaces, group: group})
	require.NoError(t, err)
	assert.Equal(t, strings.ReplaceAll(twoStreams, "@/onvif", c.Host()+"/onvif"), text)
	assert.Equal(t, []string{"lo (127.0.0.1)", "gone (127.0.0.1)"}, r.Interfaces)

	_, _, err = run(t, &Discovery{interfaces: interfaces[1:], group: group})
	require.ErrorContains(t, err, "probe on gone: ")
	require.NoError(t, listening.Close())
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(time.Millisecond, cancel)
	r, err = (&Discovery{interfaces: interfaces[:1], group: group}).Run(ctx)
	require.EqualError(t, err, "no ONVIF camera has answered on lo (127.0.0.1) (enable ONVIF in the camera; "+
		"cameras in another network are asked by their address: devices --discover ADDRESS)")
	assert.Empty(t, r.Cameras)
}

// TestInterfaces: those of this machine can be listed.
func TestInterfaces(t *testing.T) {
	found, err := localInterfaces()
	require.NoError(t, err)
	for _, i := range found {
		assert.NotEmpty(t, i.name)
		assert.False(t, i.address.IsLoopback())
	}
}

// FuzzAnswers: no answer of a camera panics, makes a target elsewhere or a line of its own in the configuration.
func FuzzAnswers(f *testing.F) {
	c := &onviftest.Camera{}
	c.Start()
	f.Cleanup(c.Close)
	f.Add([]byte(c.Match("urn:uuid:1")), "rtsp://192.0.2.1/x?y#z", 200)
	f.Add([]byte(`<s:Envelope><s:Body><s:Fault><s:Code><s:Subcode><s:Value>ter:NotAuthorized</s:Value></s:Subcode></s:Code></s:Fault>`), "rtsps://u:p@h:1/${A}", 400)
	f.Add([]byte(`<?xml version="1.0" encoding="gb2312"?><e><Body><ProbeMatches><ProbeMatch><XAddrs>a:1 https://[::1]:2/é</XAddrs>`), "rtsp://h\n/", 500)
	from := netip.MustParseAddr("192.0.2.9")
	device, err := deviceService("192.0.2.9")
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, data []byte, uri string, status int) {
		for _, found := range matches(from, data) {
			if found.service.Hostname() != from.String() || strings.ContainsAny(found.title, "\n\r\x1b") {
				t.Fatalf("%+v", found)
			}
		}
		var answer struct {
			Services []struct {
				XAddr string
			} `xml:"Body>GetServicesResponse>Service"`
		}
		err := interpret(status, data, &answer)
		if err != nil && strings.ContainsAny(err.Error(), "\n\x1b") && !strings.HasPrefix(err.Error(), "XML") {
			t.Fatalf("%q", err)
		}
		for _, service := range answer.Services {
			if at := atHost(service.XAddr, device); at != nil && at.Hostname() != device.Hostname() {
				t.Fatal(at)
			}
		}
		plain, err := cleanAddress(uri, device)
		if err != nil {
			return
		}
		address := configured(plain, true)
		r := Result{Cameras: []Camera{{Name: "x", Profiles: []Profile{{URI: address, Name: clean(uri), Suggested: true}}}}}
		var text strings.Builder
		if r.Print(&text) != nil || strings.Count(text.String(), "\n") != 4 {
			t.Fatalf("%q", text.String())
		}
		rest := strings.TrimPrefix(address, "rtsps")
		rest = strings.TrimPrefix(strings.TrimPrefix(rest, "rtsp"), "://${CAMERA_USER}:${CAMERA_PASSWORD}@")
		if strings.Contains(strings.ReplaceAll(rest, "$${", ""), "${") {
			t.Fatalf("a reference of the camera's in %q", address)
		}
	})
}

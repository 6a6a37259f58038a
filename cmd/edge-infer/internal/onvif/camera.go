package onvif

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/edge-infer/edge-infer/internal/redact"
)

// Namespaces of ONVIF's services.
const (
	deviceService10 = "http://www.onvif.org/ver10/device/wsdl"
	mediaService10  = "http://www.onvif.org/ver10/media/wsdl"
	mediaService20  = "http://www.onvif.org/ver20/media/wsdl" // the only one that knows H.265
)

// maxProfiles bounds the profiles of a camera.
const maxProfiles = 32

// Camera is a camera that has answered.
type Camera struct {
	// Name is a name for the configuration, different from those of the others.
	Name string `json:"name"`
	// Address is the URL of the device service.
	Address      string `json:"address"`
	Manufacturer string `json:"manufacturer,omitempty"`
	Model        string `json:"model,omitempty"`
	Firmware     string `json:"firmware,omitempty"`
	// ClockError is the camera's clock minus that of this machine, in seconds, if the camera has reported its time.
	ClockError *float64  `json:"clock_error_s,omitempty"`
	Profiles   []Profile `json:"profiles"`
	// Reason is why there are no profiles.
	Reason string `json:"reason,omitempty"`

	denied bool
}

// Profile is a stream of a camera.
type Profile struct {
	Name     string  `json:"name"`
	Encoding string  `json:"encoding,omitempty"` // H264, H265, JPEG
	Width    int     `json:"width,omitempty"`
	Height   int     `json:"height,omitempty"`
	FPS      float64 `json:"fps,omitempty"`
	// URI is the stream's address as it is written in the configuration, with references for user name and password.
	URI string `json:"uri"`
	// Address is the same without references, and without a login.
	Address string `json:"-"`
	// Suggested is set for one profile of each camera: the smallest that is wide enough for a network.
	Suggested bool `json:"suggested"`
	// Record is set for the largest profile, if it is larger than the suggested one.
	Record bool `json:"record"`
}

// query asks a camera for its description and streams.
func query(ctx context.Context, t target, login Login) Camera {
	c := newClient(login)
	defer c.close()
	camera := Camera{Address: t.service.String(), Model: t.title, Profiles: []Profile{}}
	camera.ClockError = c.readClock(ctx, t.service)
	err := c.describe(ctx, t.service, &camera)
	if err == nil {
		camera.Profiles, err = c.profiles(ctx, t.service)
	}
	if err == nil && len(camera.Profiles) == 0 {
		err = errors.New("it offers no RTSP stream")
	}
	switch {
	case errors.Is(err, errDenied) && login.User == "":
		camera.denied = true
		camera.Reason = "it requires a user name and password (set CAMERA_USER and CAMERA_PASSWORD)"
	case errors.Is(err, errDenied):
		camera.denied = true
		camera.Reason = "it refuses the user name or password (correct CAMERA_USER and CAMERA_PASSWORD; some cameras have users of ONVIF's own)"
	case errors.Is(err, context.DeadlineExceeded), ctx.Err() != nil:
		camera.Reason = "no answer in time"
	case err != nil:
		camera.Reason = err.Error()
	}
	return camera
}

// readClock returns the error of the camera's clock in seconds, nil if unknown. Tokens have the camera's time from then on.
func (c *client) readClock(ctx context.Context, device *url.URL) *float64 {
	var answer struct {
		UTC struct {
			Year   int `xml:"Date>Year"`
			Month  int `xml:"Date>Month"`
			Day    int `xml:"Date>Day"`
			Hour   int `xml:"Time>Hour"`
			Minute int `xml:"Time>Minute"`
			Second int `xml:"Time>Second"`
		} `xml:"Body>GetSystemDateAndTimeResponse>SystemDateAndTime>UTCDateTime"`
	}
	anonymous := client{plain: c.plain}
	err := anonymous.call(ctx, device, deviceService10+"/GetSystemDateAndTime", `<GetSystemDateAndTime xmlns="`+deviceService10+`"/>`, &answer)
	utc := answer.UTC
	if err != nil || utc.Year < 1970 || utc.Year > 9999 {
		return nil
	}
	at := time.Date(utc.Year, time.Month(utc.Month), utc.Day, utc.Hour, utc.Minute, utc.Second, 0, time.UTC)
	c.skew = time.Until(at).Round(time.Second)
	seconds := c.skew.Seconds()
	return &seconds
}

// describe fills in maker and model. Only refused credentials are an error: streams matter more than names.
func (c *client) describe(ctx context.Context, device *url.URL, camera *Camera) error {
	var answer struct {
		Device struct {
			Manufacturer    string
			Model           string
			FirmwareVersion string
		} `xml:"Body>GetDeviceInformationResponse"`
	}
	err := c.call(ctx, device, deviceService10+"/GetDeviceInformation", `<GetDeviceInformation xmlns="`+deviceService10+`"/>`, &answer)
	if err != nil {
		if errors.Is(err, errDenied) || ctx.Err() != nil {
			return err
		}
		return nil
	}
	camera.Manufacturer = clean(answer.Device.Manufacturer)
	camera.Firmware = clean(answer.Device.FirmwareVersion)
	if model := clean(answer.Device.Model); model != "" {
		camera.Model = model
	}
	return nil
}

// profiles returns the streams, from the newer media service if the camera has one.
func (c *client) profiles(ctx context.Context, device *url.URL) ([]Profile, error) {
	media10, media20, err := c.mediaServices(ctx, device)
	if err != nil {
		return nil, err
	}
	if media20 != nil {
		found, err := c.mediaProfiles(ctx, media20, mediaService20, "<Type>VideoEncoder</Type>")
		if err == nil && len(found) > 0 || media10 == nil {
			return found, err
		}
	}
	if media10 == nil {
		return nil, errors.New("it has no media service")
	}
	return c.mediaProfiles(ctx, media10, mediaService10, "")
}

// mediaServices returns the addresses of both media services, nil for one that the camera does not have. Their host is always the one that
// was asked.
func (c *client) mediaServices(ctx context.Context, device *url.URL) (media10, media20 *url.URL, err error) {
	var answer struct {
		Services []struct {
			Namespace string
			XAddr     string
		} `xml:"Body>GetServicesResponse>Service"`
	}
	err = c.call(ctx, device, deviceService10+"/GetServices",
		`<GetServices xmlns="`+deviceService10+`"><IncludeCapability>false</IncludeCapability></GetServices>`, &answer)
	for _, service := range answer.Services {
		switch strings.TrimSpace(service.Namespace) {
		case mediaService10:
			media10 = atHost(service.XAddr, device)
		case mediaService20:
			media20 = atHost(service.XAddr, device)
		}
	}
	if media10 != nil || media20 != nil || errors.Is(err, errDenied) || ctx.Err() != nil {
		return media10, media20, err
	}
	var former struct { // of cameras that do not know GetServices
		XAddr string `xml:"Body>GetCapabilitiesResponse>Capabilities>Media>XAddr"`
	}
	err = c.call(ctx, device, deviceService10+"/GetCapabilities",
		`<GetCapabilities xmlns="`+deviceService10+`"><Category>Media</Category></GetCapabilities>`, &former)
	if err != nil {
		return nil, nil, err
	}
	return atHost(former.XAddr, device), nil, nil
}

// atHost returns a service's address at the host of the device: what a camera behind a router calls itself leads nowhere, and credentials
// are for this host alone. It returns nil if the address is unusable.
func atHost(address string, device *url.URL) *url.URL {
	service, err := deviceService(strings.TrimSpace(address))
	if err != nil || strings.TrimSpace(address) == "" {
		return nil
	}
	service.Host = hostWithPort(device.Hostname(), service.Port())
	return service
}

// encoder is a video encoder's configuration in both media services.
type encoder struct {
	Encoding string
	Width    int     `xml:"Resolution>Width"`
	Height   int     `xml:"Resolution>Height"`
	FPS      float64 `xml:"RateControl>FrameRateLimit"`
}

// mediaProfiles returns the profiles of a media service that have video. Profiles whose address the camera does not give are left out,
// unless it gives none.
func (c *client) mediaProfiles(ctx context.Context, media *url.URL, namespace, filter string) (found []Profile, err error) {
	var answer struct {
		Profiles []struct {
			Token     string `xml:"token,attr"`
			Name      string
			Encoder10 *encoder `xml:"VideoEncoderConfiguration"`
			Encoder20 *encoder `xml:"Configurations>VideoEncoder"`
		} `xml:"Body>GetProfilesResponse>Profiles"`
	}
	err = c.call(ctx, media, namespace+"/GetProfiles", `<GetProfiles xmlns="`+namespace+`">`+filter+`</GetProfiles>`, &answer)
	if err != nil {
		return nil, err
	}
	var failure error
	for _, p := range answer.Profiles {
		video := p.Encoder10
		if video == nil {
			video = p.Encoder20
		}
		if video == nil || len(found) == maxProfiles {
			continue
		}
		address, err := c.streamAddress(ctx, media, namespace, p.Token)
		if errors.Is(err, errDenied) || ctx.Err() != nil {
			return nil, err
		}
		if err != nil {
			failure = fmt.Errorf("profile %s: %w", clean(p.Name), err)
			continue
		}
		found = append(found, Profile{
			Name: clean(p.Name), Encoding: clean(video.Encoding), Width: video.Width, Height: video.Height, FPS: video.FPS,
			URI: configured(address, c.login.User != ""), Address: address,
		})
	}
	if len(found) == 0 {
		return nil, failure
	}
	decoded := suggested(found)
	found[decoded].Suggested = true
	recorded := largest(found)
	found[recorded].Record = found[recorded].pixels() > found[decoded].pixels()
	return found, nil
}

// streamAddress returns a profile's address.
func (c *client) streamAddress(ctx context.Context, media *url.URL, namespace, token string) (string, error) {
	const schema = "http://www.onvif.org/ver10/schema"
	setup := `<StreamSetup><Stream xmlns="` + schema + `">RTP-Unicast</Stream><Transport xmlns="` + schema +
		`"><Protocol>RTSP</Protocol></Transport></StreamSetup>`
	if namespace == mediaService20 {
		setup = `<Protocol>RTSP</Protocol>`
	}
	var answer struct {
		URI10 string `xml:"Body>GetStreamUriResponse>MediaUri>Uri"`
		URI20 string `xml:"Body>GetStreamUriResponse>Uri"`
	}
	err := c.call(ctx, media, namespace+"/GetStreamUri",
		`<GetStreamUri xmlns="`+namespace+`">`+setup+`<ProfileToken>`+escape(token)+`</ProfileToken></GetStreamUri>`, &answer)
	if err != nil {
		return "", err
	}
	return cleanAddress(answer.URI10+answer.URI20, media)
}

// References to the credentials in a printed configuration. The program reads them from the variables of these names too.
const (
	UserVariable     = "CAMERA_USER"
	PasswordVariable = "CAMERA_PASSWORD"
)

// cleanAddress returns the address of a stream that a camera gives, without credentials and without parameters for this program.
func cleanAddress(text string, media *url.URL) (string, error) {
	u, err := url.Parse(strings.TrimSpace(text))
	if err != nil || u.Hostname() == "" || u.Scheme != "rtsp" && u.Scheme != "rtsps" {
		return "", errors.New("the camera gives no RTSP address")
	}
	u.User = nil
	u.Fragment = ""
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil && (ip.IsUnspecified() || ip.IsLoopback()) {
		u.Host = hostWithPort(media.Hostname(), u.Port())
	}
	return redact.Named(strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' {
			return -1
		}
		return r
	}, u.String())), nil
}

// configured returns an address as it is written in the configuration: no reference in it is the camera's.
func configured(address string, withLogin bool) string {
	address = strings.ReplaceAll(address, "${", "$${")
	if !withLogin {
		return address
	}
	scheme, rest, _ := strings.Cut(address, "://")
	return scheme + "://${" + UserVariable + "}:${" + PasswordVariable + "}@" + rest
}

// enoughWidth is the width in pixels that serves a network of 640 x 640.
const enoughWidth = 640

// suggested returns the index of the smallest profile that is wide enough for a network, of the largest one if none is.
func suggested(profiles []Profile) int {
	best := 0
	for i := range profiles {
		if profiles[i].suits(&profiles[best]) {
			best = i
		}
	}
	return best
}

// largest returns the index of the first profile with the most pixels.
func largest(profiles []Profile) int {
	best := 0
	for i := range profiles {
		if profiles[i].pixels() > profiles[best].pixels() {
			best = i
		}
	}
	return best
}

func (p *Profile) pixels() int { return p.Width * p.Height }

// suits reports whether p suits a network better than other.
func (p *Profile) suits(other *Profile) bool {
	wide, otherWide := p.Width >= enoughWidth, other.Width >= enoughWidth
	size, otherSize := p.pixels(), other.pixels()
	switch {
	case wide != otherWide:
		return wide
	case wide:
		return size < otherSize
	}
	return size > otherSize
}

// setNames gives the cameras names for the configuration, from their models.
func setNames(cameras []Camera) {
	used := map[string]bool{}
	for i := range cameras {
		slug := strings.Trim(notSlug.ReplaceAllString(strings.ToLower(cameras[i].Model), "-"), "-")
		if slug == "" {
			slug = "camera"
		}
		name := slug
		for n := 2; used[name]; n++ {
			name = fmt.Sprintf("%s-%d", slug, n)
		}
		used[name] = true
		cameras[i].Name = name
	}
}

// notSlug matches what a camera's name should not have.
var notSlug = regexp.MustCompile(`[^a-z0-9]+`)

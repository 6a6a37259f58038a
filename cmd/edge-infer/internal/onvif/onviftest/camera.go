// Package onviftest is an ONVIF camera for tests: WS-Discovery and the services of devices and media, with logins and a clock of its own.
package onviftest

import (
	"crypto/md5"  //nolint:gosec // HTTP digest authentication
	"crypto/sha1" //nolint:gosec // WS-UsernameToken
	"encoding/base64"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"github.com/icholy/digest"
)

// Camera is a camera. The fields must not change after Start.
type Camera struct {
	User, Password string // empty user: no login
	// Digest wants HTTP digest authentication, otherwise the camera wants tokens in messages.
	Digest bool
	// Skew is the clock of the camera minus that of the machine. Tokens that are more than ten seconds old or early are refused.
	Skew time.Duration
	// Media20 offers the second media service too, Former only GetCapabilities and no GetServices.
	Media20, Former bool
	// Answers replace what the camera answers to a request, by its name; %s is the camera's host and port.
	Answers map[string]string

	Refused atomic.Int32 // requests with wrong credentials, and those without any where HTTP digest is wanted

	server *httptest.Server
}

// Start starts the camera on 127.0.0.1.
func (c *Camera) Start() {
	c.server = httptest.NewUnstartedServer(c)
	c.server.Start() // behind the assignment, which requests read
}

// Close stops the camera.
func (c *Camera) Close() { c.server.Close() }

// Host returns the IP address and port.
func (c *Camera) Host() string { return c.server.Listener.Addr().String() }

// Match answers a probe with message ID id, as a camera that reports its address behind a router as well.
func (c *Camera) Match(id string) string {
	return `<?xml version="1.0" encoding="UTF-8"?><SOAP-ENV:Envelope xmlns:SOAP-ENV="http://www.w3.org/2003/05/soap-envelope"
xmlns:wsa="http://schemas.xmlsoap.org/ws/2004/08/addressing" xmlns:d="http://schemas.xmlsoap.org/ws/2005/04/discovery"><SOAP-ENV:Header>
<wsa:RelatesTo>` + id + `</wsa:RelatesTo></SOAP-ENV:Header><SOAP-ENV:Body><d:ProbeMatches><d:ProbeMatch>
<wsa:EndpointReference><wsa:Address>urn:uuid:1</wsa:Address></wsa:EndpointReference><d:Types>tdn:NetworkVideoTransmitter</d:Types>
<d:Scopes>onvif://www.onvif.org/type/video_encoder onvif://www.onvif.org/name/Stand%20In onvif://www.onvif.org/hardware/X1</d:Scopes>
<d:XAddrs>ftp://203.0.113.1/x http://203.0.113.1:` + c.port() + `/onvif/device_service</d:XAddrs><d:MetadataVersion>1</d:MetadataVersion>
</d:ProbeMatch></d:ProbeMatches></SOAP-ENV:Body></SOAP-ENV:Envelope>`
}

func (c *Camera) port() string {
	_, port, _ := strings.Cut(c.Host(), ":")
	return port
}

// profiles has two streams, and a third without video. The first address is one that leads nowhere from outside the camera.
const profiles10 = `<trt:GetProfilesResponse><trt:Profiles fixed="true" token="main"><tt:Name>Main "stream"</tt:Name>
<tt:VideoEncoderConfiguration token="v1"><tt:Encoding>H264</tt:Encoding><tt:Resolution><tt:Width>2560</tt:Width><tt:Height>1440</tt:Height>
</tt:Resolution><tt:RateControl><tt:FrameRateLimit>25</tt:FrameRateLimit></tt:RateControl></tt:VideoEncoderConfiguration></trt:Profiles>
<trt:Profiles token="sub&amp;1"><tt:Name>Sub</tt:Name><tt:VideoEncoderConfiguration><tt:Encoding>H264</tt:Encoding><tt:Resolution>
<tt:Width>640</tt:Width><tt:Height>360</tt:Height></tt:Resolution><tt:RateControl><tt:FrameRateLimit>15</tt:FrameRateLimit></tt:RateControl>
</tt:VideoEncoderConfiguration></trt:Profiles><trt:Profiles token="audio"><tt:Name>Sound</tt:Name></trt:Profiles></trt:GetProfilesResponse>`

const profiles20 = `<tr2:GetProfilesResponse><tr2:Profiles token="main" fixed="true"><tr2:Name>Main</tr2:Name><tr2:Configurations>
<tr2:VideoEncoder token="v1"><tt:Encoding>H265</tt:Encoding><tt:Resolution><tt:Width>3840</tt:Width><tt:Height>2160</tt:Height></tt:Resolution>
<tt:RateControl ConstantBitRate="true"><tt:FrameRateLimit>12.5</tt:FrameRateLimit></tt:RateControl></tr2:VideoEncoder></tr2:Configurations>
</tr2:Profiles></tr2:GetProfilesResponse>`

// ServeHTTP answers a request of SOAP.
func (c *Camera) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil {
		return
	}
	var message request
	if err := xml.Unmarshal(body, &message); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	name := message.Body.Any.XMLName.Local
	if name != "GetSystemDateAndTime" && !c.admits(w, r, &message) {
		c.Refused.Add(1)
		return
	}
	answer, known := c.answer(name, message.Body.Any.XMLName.Space, message.Body.Any.Token)
	w.Header().Set("Content-Type", "application/soap+xml; charset=utf-8")
	if !known {
		w.WriteHeader(http.StatusBadRequest)
		answer = fault("ter:ActionNotSupported", "Optional Action Not Implemented")
	}
	_, _ = fmt.Fprint(w, envelope(answer))
}

// request is the part of a message that the camera reads.
type request struct {
	Token struct {
		Username string `xml:"Username"`
		Password string `xml:"Password"`
		Nonce    string `xml:"Nonce"`
		Created  string `xml:"Created"`
	} `xml:"Header>Security>UsernameToken"`
	Body struct {
		Any struct {
			XMLName xml.Name
			Token   string `xml:"ProfileToken"`
		} `xml:",any"`
	} `xml:"Body"`
}

// admits reports whether the credentials are right; otherwise it has answered.
func (c *Camera) admits(w http.ResponseWriter, r *http.Request, message *request) bool {
	if c.User == "" {
		return true
	}
	if c.Digest {
		if message.Token.Username == "" && c.digestMatches(r) {
			return true
		}
		w.Header().Set("WWW-Authenticate", `Digest realm="onvif", qop="auth", nonce="abc", algorithm=MD5`)
		w.WriteHeader(http.StatusUnauthorized)
		return false
	}
	nonce, _ := base64.StdEncoding.DecodeString(message.Token.Nonce)
	created, _ := time.Parse(time.RFC3339, message.Token.Created)
	sum := sha1.Sum([]byte(string(nonce) + message.Token.Created + c.Password)) //nolint:gosec // see above
	fresh := time.Until(created.Add(-c.Skew)).Abs() < 10*time.Second
	if message.Token.Username == c.User && message.Token.Password == base64.StdEncoding.EncodeToString(sum[:]) && fresh {
		return true
	}
	w.WriteHeader(http.StatusBadRequest)
	_, _ = fmt.Fprint(w, envelope(fault("ter:NotAuthorized", "Sender not Authorized")))
	return false
}

func (c *Camera) digestMatches(r *http.Request) bool {
	given, err := digest.ParseCredentials(r.Header.Get("Authorization"))
	if err != nil || given.Username != c.User || given.URI != r.URL.RequestURI() {
		return false
	}
	one := hash(c.User + ":onvif:" + c.Password)
	two := hash(r.Method + ":" + given.URI)
	return given.Response == hash(fmt.Sprintf("%s:%s:%08x:%s:%s:%s", one, given.Nonce, given.Nc, given.Cnonce, given.QOP, two))
}

func hash(text string) string {
	sum := md5.Sum([]byte(text)) //nolint:gosec // see above
	return hex.EncodeToString(sum[:])
}

// answer returns the body for a request.
func (c *Camera) answer(name, namespace, token string) (text string, known bool) {
	if text, known = c.Answers[name]; known {
		return strings.ReplaceAll(text, "%s", c.Host()), true
	}
	second := strings.Contains(namespace, "ver20")
	switch {
	case name == "GetSystemDateAndTime":
		at := time.Now().Add(c.Skew).UTC()
		return fmt.Sprintf(`<tds:GetSystemDateAndTimeResponse><tds:SystemDateAndTime><tt:UTCDateTime><tt:Time><tt:Hour>%d</tt:Hour>`+
			`<tt:Minute>%d</tt:Minute><tt:Second>%d</tt:Second></tt:Time><tt:Date><tt:Year>%d</tt:Year><tt:Month>%d</tt:Month><tt:Day>%d</tt:Day>`+
			`</tt:Date></tt:UTCDateTime></tds:SystemDateAndTime></tds:GetSystemDateAndTimeResponse>`,
			at.Hour(), at.Minute(), at.Second(), at.Year(), at.Month(), at.Day()), true
	case name == "GetDeviceInformation":
		return `<tds:GetDeviceInformationResponse><tds:Manufacturer>Stand-In</tds:Manufacturer><tds:Model>X1 Pro</tds:Model>` +
			`<tds:FirmwareVersion>1.2</tds:FirmwareVersion></tds:GetDeviceInformationResponse>`, true
	case name == "GetServices" && !c.Former:
		services := c.service("ver10/device", "device_service") + c.service("ver10/media", "media")
		if c.Media20 {
			services += c.service("ver20/media", "media2")
		}
		return "<tds:GetServicesResponse>" + services + "</tds:GetServicesResponse>", true
	case name == "GetCapabilities":
		return `<tds:GetCapabilitiesResponse><tds:Capabilities><tt:Media><tt:XAddr>http://203.0.113.1:` + c.port() +
			`/onvif/media</tt:XAddr></tt:Media></tds:Capabilities></tds:GetCapabilitiesResponse>`, true
	case name == "GetProfiles" && second:
		return profiles20, true
	case name == "GetProfiles":
		return profiles10, true
	case name == "GetStreamUri" && second:
		return "<tr2:GetStreamUriResponse><tr2:Uri>rtsp://192.0.2.7:554/" + token + "</tr2:Uri></tr2:GetStreamUriResponse>", true
	case name == "GetStreamUri" && (token == "main" || token == "sub&1"):
		path, _, _ := strings.Cut(token, "&")
		return "<trt:GetStreamUriResponse><trt:MediaUri><tt:Uri>rtsp://0.0.0.0:554/" + path + "?a=1&amp;b=2</tt:Uri></trt:MediaUri>" +
			"</trt:GetStreamUriResponse>", true
	}
	return "", false
}

func (c *Camera) service(namespace, path string) string {
	return `<tds:Service><tds:Namespace>http://www.onvif.org/` + namespace + `/wsdl</tds:Namespace><tds:XAddr>http://203.0.113.1:` + c.port() +
		`/onvif/` + path + `</tds:XAddr></tds:Service>`
}

func fault(code, reason string) string {
	return `<s:Fault><s:Code><s:Value>s:Sender</s:Value><s:Subcode><s:Value>` + code + `</s:Value></s:Subcode></s:Code><s:Reason>` +
		`<s:Text xml:lang="en">` + reason + `</s:Text></s:Reason></s:Fault>`
}

func envelope(body string) string {
	return `<?xml version="1.0" encoding="UTF-8"?><s:Envelope xmlns:s="http://www.w3.org/2003/05/soap-envelope" ` +
		`xmlns:tds="http://www.onvif.org/ver10/device/wsdl" xmlns:trt="http://www.onvif.org/ver10/media/wsdl" ` +
		`xmlns:tr2="http://www.onvif.org/ver20/media/wsdl" xmlns:tt="http://www.onvif.org/ver10/schema" ` +
		`xmlns:ter="http://www.onvif.org/ver10/error"><s:Body>` + body + `</s:Body></s:Envelope>`
}

var messageID = regexp.MustCompile(`MessageID>([^<]+)<`)

// Answer returns the answer to a datagram, nil if it is not a probe for cameras.
func (c *Camera) Answer(datagram []byte) []byte {
	id := messageID.FindSubmatch(datagram)
	if id == nil || !strings.Contains(string(datagram), "NetworkVideoTransmitter") {
		return nil
	}
	return []byte(c.Match(string(id[1])))
}

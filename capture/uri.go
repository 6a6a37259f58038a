package capture

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/edge-infer/edge-infer/capture/scene"
	"github.com/edge-infer/edge-infer/engine"
)

// Kind is the kind of source that a URI names.
type Kind uint8

// The kinds, in the order of the documentation.
const (
	Device   Kind = iota // 0, /dev/video0, v4l2:///dev/video0
	CSI                  // csi://0
	RTSP                 // rtsp://, rtsps://
	HTTP                 // http://, https://
	File                 // a video, an image or a directory of images
	Pipeline             // gst:PIPELINE
	Demo                 // demo
)

// URI is a parsed camera URI. The kind determines which parameters apply; the zero value of each leaves the choice to the source.
type URI struct {
	Kind Kind
	// Address is what to open: device path, sensor number, URL with credentials, file path or pipeline.
	Address string

	Width, Height int     // pixels
	FPS           float64 // frames per second
	Encoding      string  // Device: yuyv or mjpeg
	Mode          int     // CSI: sensor mode, -1 for the driver's choice
	Flip          int     // CSI: 0 to 7, nvvidconv's flip-method
	Seed          int64   // Demo
	Frames        int     // Demo: ends after that many, 0 for never
	Loop          bool    // File: restarts at the end
	Transport     string  // RTSP: tcp, udp or multicast; empty for tcp
	Decoder       string  // RTSP: one of Decoders; empty for the first that works
	LowLatency    bool    // RTSP: video without B-frames, whose images a decoder need not hold back
	Certificate   string  // RTSP over TLS: file of the camera's CA, sha256:FINGERPRINT or insecure; empty for the system's CAs
}

// Scheme returns the scheme of a server's URL, for example rtsps.
func (u URI) Scheme() string {
	scheme, _, _ := strings.Cut(u.Address, "://")
	return strings.ToLower(scheme)
}

// String returns the address without credentials.
func (u URI) String() string {
	switch u.Kind {
	case Demo:
		return "demo"
	case CSI:
		return "csi://" + u.Address
	case Pipeline:
		return "gst:" + Redact(u.Address)
	}
	return Redact(u.Address)
}

// NewError returns an error about the URI.
func (u URI) NewError(op string, kind error, message, hint string, cause error) *Error {
	return &Error{Op: op, URI: u.String(), Kind: kind, Message: message, Hint: hint, Err: cause}
}

// parameters lists what each kind accepts after a question mark, or, for RTSP, after a number sign: server URLs keep their queries. Plain
// paths and pipelines have none.
var parameters = map[Kind][]string{
	RTSP:   {"transport", "certificate", "decoder", "latency"},
	Device: {"width", "height", "fps", "format"},
	CSI:    {"width", "height", "fps", "mode", "flip"},
	File:   {"fps", "loop"},
	Demo:   {"width", "height", "fps", "seed", "frames"},
}

// Decoders are the names of decoders in an address, in the order in which they are tried.
func Decoders() []string { return []string{"nvdec", "nvmm", "hardware", "software"} }

// MaxRate is the highest rate that a URI may request, in frames per second.
const MaxRate = 1000

// ParseURI parses a camera URI without touching files or devices. Errors are *Error of kind ErrURI.
func ParseURI(text string) (URI, error) {
	p := parser{text: strings.TrimSpace(text)}
	u := p.parse()
	if p.err != nil {
		return URI{}, p.err
	}
	return u, nil
}

type parser struct {
	text string
	err  *Error
}

func (p *parser) fail(message, hint string) {
	if p.err == nil {
		p.err = &Error{Op: "parse", URI: Redact(p.text), Kind: ErrURI, Message: message, Hint: hint}
	}
}

func (p *parser) parse() URI {
	const usage = "give a device number, /dev/videoN, csi://N, rtsp://, http://, a file, a directory, gst:PIPELINE or demo"
	scheme, rest, hasScheme := strings.Cut(p.text, "://")
	scheme = strings.ToLower(scheme)
	switch {
	case p.text == "":
		p.fail("empty camera URI", usage)
	case strings.ContainsRune(p.text, 0):
		p.fail("camera URI contains a zero byte", "")
	case strings.HasPrefix(p.text, "gst:"):
		pipeline := strings.TrimSpace(strings.TrimPrefix(p.text, "gst:"))
		if pipeline == "" {
			p.fail("empty pipeline", "for instance gst:videotestsrc ! videoconvert")
		}
		return URI{Kind: Pipeline, Address: pipeline}
	case p.text == "demo", strings.HasPrefix(p.text, "demo?"), hasScheme && scheme == "demo":
		_, query, _ := strings.Cut(p.text, "?")
		return p.query(URI{Kind: Demo}, query)
	case hasScheme && slices.Contains([]string{"rtsp", "rtsps", "http", "https"}, scheme):
		return p.server(scheme)
	case hasScheme && scheme == "v4l2":
		return p.device(rest)
	case hasScheme && scheme == "csi":
		return p.csi(rest)
	case hasScheme && scheme == "file":
		return p.file(rest)
	case hasScheme && plainScheme(scheme):
		p.fail("unknown scheme "+scheme+"://", usage)
	case digits(p.text) || strings.HasPrefix(p.text, "/dev/video"):
		return p.device(p.text)
	default:
		if number, _, ok := strings.Cut(p.text, "?"); ok && digits(number) {
			return p.device(p.text)
		}
		return URI{Kind: File, Address: p.text}
	}
	return URI{}
}

func (p *parser) server(scheme string) URI {
	parsed, err := url.Parse(p.text)
	switch {
	case err != nil:
		// The cause quotes the address with its credentials and is left out.
		p.fail("not a valid URL", "percent-encode special characters of the user name and password")
	case parsed.Hostname() == "":
		p.fail("URL without a host", "")
	}
	if !strings.HasPrefix(scheme, "rtsp") {
		return URI{Kind: HTTP, Address: p.text}
	}
	address, fragment, _ := strings.Cut(p.text, "#")
	u := p.query(URI{Kind: RTSP, Address: address}, fragment)
	if u.Certificate != "" && scheme != "rtsps" {
		p.fail("certificate is for rtsps://", "")
	}
	return u
}

func (p *parser) device(rest string) URI {
	path, query, _ := strings.Cut(rest, "?")
	switch {
	case digits(path):
		number, err := strconv.Atoi(path)
		if err != nil || number > 255 {
			p.fail("device number "+path+" is out of range", "V4L2 has /dev/video0 to /dev/video255")
		}
		path = "/dev/video" + strconv.Itoa(number)
	case !strings.HasPrefix(path, "/"):
		p.fail("not a device path", "for instance v4l2:///dev/video0")
	default:
		path = filepath.Clean(path)
	}
	return p.query(URI{Kind: Device, Address: path}, query)
}

func (p *parser) csi(rest string) URI {
	number, query, _ := strings.Cut(rest, "?")
	if number == "" {
		number = "0"
	}
	if !digits(number) || len(number) > 2 {
		p.fail("sensor number "+strconv.Quote(number)+" is not a number", "for instance csi://0")
	}
	return p.query(URI{Kind: CSI, Address: number, Mode: -1}, query)
}

func (p *parser) file(rest string) URI {
	path, query, _ := strings.Cut(rest, "?")
	path, err := url.PathUnescape(path)
	if err != nil || path == "" || strings.ContainsRune(path, 0) {
		p.fail("not a file path", "for instance file:///var/lib/video.mp4")
	}
	return p.query(URI{Kind: File, Address: path}, query)
}

// query parses the parameters that the kind of u accepts.
func (p *parser) query(u URI, query string) URI {
	values, err := url.ParseQuery(query)
	if err != nil {
		p.fail("malformed parameters", "write them as name=value&name=value")
		return u
	}
	names := make([]string, 0, len(values))
	for name := range values {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if !slices.Contains(parameters[u.Kind], name) {
			p.fail("unknown parameter "+strconv.Quote(name), "known: "+strings.Join(parameters[u.Kind], ", "))
			return u
		}
		if len(values[name]) != 1 {
			p.fail("parameter "+name+" is given twice", "")
		}
		p.parameter(&u, name, values.Get(name))
	}
	if (u.Width == 0) != (u.Height == 0) {
		p.fail("width and height go together", "")
	}
	return u
}

func (p *parser) parameter(u *URI, name, value string) {
	switch name {
	case "width":
		u.Width = p.side(u.Kind, name, value)
	case "height":
		u.Height = p.side(u.Kind, name, value)
	case "mode":
		u.Mode = p.integer(name, value, 0, 63)
	case "flip":
		u.Flip = p.integer(name, value, 0, 7)
	case "frames":
		u.Frames = p.integer(name, value, 1, 1<<40)
	case "fps":
		rate, err := strconv.ParseFloat(value, 64)
		if err != nil || !(rate > 0 && rate <= MaxRate) {
			p.fail("fps "+strconv.Quote(value)+" is not a number over 0 and up to 1000", "")
		}
		u.FPS = rate
	case "seed":
		seed, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			p.fail("seed "+strconv.Quote(value)+" is not a whole number", "")
		}
		u.Seed = seed
	case "format":
		u.Encoding = strings.ToLower(value)
		if u.Encoding != "yuyv" && u.Encoding != "mjpeg" {
			p.fail("format "+strconv.Quote(value)+" is neither yuyv nor mjpeg", "")
		}
	case "transport":
		u.Transport = strings.ToLower(value)
		if !slices.Contains([]string{"tcp", "udp", "multicast"}, u.Transport) {
			p.fail("transport "+strconv.Quote(value)+" is none of tcp, udp and multicast", "")
		}
	case "decoder":
		u.Decoder = value
		if !slices.Contains(Decoders(), value) {
			p.fail("decoder "+strconv.Quote(value)+" is unknown", "known: "+strings.Join(Decoders(), ", "))
		}
	case "latency":
		u.LowLatency = value == "low"
		if !u.LowLatency {
			p.fail("latency "+strconv.Quote(value)+" is not low", "")
		}
	case "certificate":
		u.Certificate = p.certificate(value)
	case "loop":
		loop, err := strconv.ParseBool(value)
		if err != nil {
			p.fail("loop "+strconv.Quote(value)+" is neither 0 nor 1", "")
		}
		u.Loop = loop
	}
}

// certificate parses what a camera's certificate is compared with.
func (p *parser) certificate(value string) string {
	fingerprint, ok := strings.CutPrefix(value, "sha256:")
	if !ok {
		if value == "" {
			p.fail("empty certificate", "give a file, sha256:FINGERPRINT or insecure")
		}
		return value
	}
	fingerprint = strings.ToLower(strings.ReplaceAll(fingerprint, ":", ""))
	if raw, err := hex.DecodeString(fingerprint); err != nil || len(raw) != sha256.Size {
		p.fail("certificate "+strconv.Quote(value)+" is not a SHA-256 fingerprint", "it has 64 hexadecimal digits")
	}
	return "sha256:" + fingerprint
}

// side parses an image's width or height.
func (p *parser) side(kind Kind, name, value string) int {
	if kind == Demo {
		return p.integer(name, value, scene.MinSide, scene.MaxSide)
	}
	return p.integer(name, value, 2, engine.MaxSide)
}

func (p *parser) integer(name, value string, least, most int) int {
	n, err := strconv.Atoi(value)
	if err != nil || n < least || n > most {
		p.fail(name+" "+strconv.Quote(value)+" is not a whole number of "+strconv.Itoa(least)+" to "+strconv.Itoa(most), "")
	}
	return n
}

func digits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// plainScheme distinguishes ftp://x from a file whose name contains "://".
func plainScheme(s string) bool {
	return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789+-.") == ""
}

package onvif

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha1" //nolint:gosec // WS-UsernameToken demands it
	"encoding/base64"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/icholy/digest"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/mqtt/credentials"
)

// Limits of what a camera may answer.
const (
	maxAnswer = 1 << 20 // bytes of a message
	maxText   = 80      // characters of a name
)

// errDenied reports a camera that wants credentials, or other ones.
var errDenied = errors.New("access denied")

// Login is a user name and password.
type Login struct {
	User     string
	Password credentials.Secret
}

// client calls the services of one camera. One goroutine uses it.
type client struct {
	login  Login
	plain  http.Client
	digest http.Client
	// wantsDigest is set after the camera has asked for HTTP digest authentication, which replaces the token in the message.
	wantsDigest bool
	skew        time.Duration // the camera's clock minus ours; tokens have the camera's time
}

func newClient(login Login) *client {
	transport := &http.Transport{DisableCompression: true, MaxResponseHeaderBytes: 64 << 10} // cameras are not behind a proxy
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &client{
		login: login,
		plain: http.Client{Transport: transport, CheckRedirect: stay},
		digest: http.Client{CheckRedirect: stay, Transport: &digest.Transport{
			Username: login.User, Password: string(login.Password),
			Transport: transport,
		}},
	}
}

func (c *client) close() { c.plain.CloseIdleConnections() }

// call sends a request to a service and parses the answer's envelope. action is a namespace and a name with a slash between.
func (c *client) call(ctx context.Context, service *url.URL, action, request string, answer any) error {
	if !c.wantsDigest {
		response, err := c.post(ctx, &c.plain, service, action, envelope(c.token(), request))
		if err != nil {
			return err
		}
		if response.StatusCode != http.StatusUnauthorized || c.login.User == "" || response.Header.Get("WWW-Authenticate") == "" {
			return parse(response, answer)
		}
		_ = response.Body.Close()
		_, err = digest.FindChallenge(response.Header)
		if err != nil {
			return errors.New("the camera wants the password in clear or by an unknown method " +
				"(choose digest authentication for ONVIF in its settings)")
		}
		c.wantsDigest = true
	}
	response, err := c.post(ctx, &c.digest, service, action, envelope("", request))
	if err != nil {
		return err
	}
	return parse(response, answer)
}

func (c *client) post(ctx context.Context, by *http.Client, service *url.URL, action, message string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, service.String(), strings.NewReader(message))
	if err != nil {
		return nil, errors.New("not a valid URL")
	}
	request.Header.Set("Content-Type", `application/soap+xml; charset=utf-8; action="`+action+`"`)
	response, err := by.Do(request)
	if err != nil {
		return nil, withoutURL(err)
	}
	return response, nil
}

// withoutURL returns the cause of an error of net/http.
func withoutURL(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	return capture.NetworkCause(err)
}

func envelope(header, body string) string {
	return `<?xml version="1.0" encoding="utf-8"?><s:Envelope xmlns:s="http://www.w3.org/2003/05/soap-envelope"><s:Header>` + header +
		`</s:Header><s:Body>` + body + `</s:Body></s:Envelope>`
}

// token returns a WS-UsernameToken with a password digest, or nothing without a user.
func (c *client) token() string {
	if c.login.User == "" {
		return ""
	}
	var nonce [16]byte
	_, _ = rand.Read(nonce[:]) // never fails
	created := time.Now().Add(c.skew).UTC().Format("2006-01-02T15:04:05.000Z")
	sum := sha1.Sum(append(append(nonce[:], created...), c.login.Password...)) //nolint:gosec // see above
	const secext = "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-secext-1.0.xsd"
	const utility = "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-utility-1.0.xsd"
	const profile = "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-username-token-profile-1.0#PasswordDigest"
	const encoding = "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-soap-message-security-1.0#Base64Binary"
	encoded := base64.StdEncoding.EncodeToString
	return `<Security s:mustUnderstand="1" xmlns="` + secext + `"><UsernameToken><Username>` + escape(c.login.User) +
		`</Username><Password Type="` + profile + `">` + encoded(sum[:]) + `</Password><Nonce EncodingType="` + encoding + `">` +
		encoded(nonce[:]) + `</Nonce><Created xmlns="` + utility + `">` + created + `</Created></UsernameToken></Security>`
}

func escape(text string) string {
	var out strings.Builder
	_ = xml.EscapeText(&out, []byte(text)) // the builder does not fail
	return out.String()
}

// fault is the error of a SOAP message, of version 1.2 or 1.1.
type fault struct {
	Code     string `xml:"Body>Fault>Code>Subcode>Value"`
	Reason   string `xml:"Body>Fault>Reason>Text"`
	Code11   string `xml:"Body>Fault>faultcode"`
	Reason11 string `xml:"Body>Fault>faultstring"`
}

// parse reads a response and closes it.
func parse(response *http.Response, answer any) error {
	defer response.Body.Close()
	data, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	if err != nil {
		return withoutURL(err)
	}
	if len(data) > maxAnswer {
		return fmt.Errorf("the answer has more than %d bytes", maxAnswer)
	}
	return interpret(response.StatusCode, data, answer)
}

// interpret parses an answer and its fault.
func interpret(status int, data []byte, answer any) error {
	var failed fault
	invalid := decode(data, &failed)
	code := failed.Code + failed.Code11
	refused := status == http.StatusUnauthorized || status == http.StatusForbidden
	for _, word := range []string{"NotAuthorized", "FailedAuthentication", "InvalidSecurity"} {
		refused = refused || strings.Contains(code, word)
	}
	reason := clean(failed.Reason + failed.Reason11)
	switch {
	case refused:
		return errDenied
	case code != "" || reason != "":
		return fmt.Errorf("the camera reports %s", strings.TrimSpace(clean(code)+" "+reason))
	case status != http.StatusOK:
		return fmt.Errorf("the camera answers %d %s", status, http.StatusText(status))
	case invalid != nil:
		return errors.New("the answer is not a SOAP message")
	}
	return decode(data, answer)
}

// decode parses XML, of which only the elements that answer names are looked for, in any namespace. Encodings other than UTF-8 are read as
// if they were: their names are damaged, and that is all.
func decode(data []byte, answer any) error {
	decoder := xml.NewDecoder(bytes.NewReader(bytes.ToValidUTF8(data, []byte("?"))))
	decoder.CharsetReader = func(_ string, input io.Reader) (io.Reader, error) { return input, nil }
	return decoder.Decode(answer)
}

// clean returns a camera's text as one line of printable characters.
func clean(text string) string {
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || r == utf8.RuneError {
			return ' '
		}
		return r
	}, text)
	text = strings.Join(strings.Fields(text), " ")
	if utf8.RuneCountInString(text) > maxText {
		text = string([]rune(text)[:maxText])
	}
	return text
}

package source

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"

	"github.com/icholy/digest"

	"github.com/edge-infer/edge-infer/capture"
)

const refusedHint = "correct them in the URI, percent-encoded; retries are rare so that the camera does not lock the account"

// credentials are the user name and password of a camera, for RTSP and HTTP.
type credentials struct {
	user, password string
}

// credentialsOf returns the credentials of a URL; ok is false if it has none.
func credentialsOf(address *url.URL) (c credentials, ok bool) {
	if address.User == nil {
		return credentials{}, false
	}
	c.user = address.User.Username()
	c.password, _ = address.User.Password()
	return c, true
}

// authorization returns the Authorization header for the server's challenges: digest if offered, otherwise basic. It is empty if the server
// supports neither.
func (c credentials) authorization(challenges http.Header, method, uri string) string {
	if challenge, err := digest.FindChallenge(challenges); err == nil {
		made, err := digest.Digest(challenge, digest.Options{Method: method, URI: uri, Username: c.user, Password: c.password, Count: 1})
		if err == nil {
			return made.String()
		}
	}
	offered := challenges.Values("WWW-Authenticate")
	for _, challenge := range offered {
		if scheme, _, _ := strings.Cut(challenge, " "); strings.EqualFold(scheme, "basic") {
			return c.basic()
		}
	}
	if len(offered) == 0 { // some small servers send no challenge
		return c.basic()
	}
	return ""
}

func (c credentials) basic() string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(c.user+":"+c.password))
}

// denied returns the error for missing or refused credentials.
func denied(u capture.URI, given bool, status string) *capture.Error {
	switch {
	case !given:
		scheme, _, _ := strings.Cut(u.Address, "://")
		return u.NewError("open", capture.ErrDenied, "the camera requires a user name and password",
			"write them as "+scheme+"://USER:PASSWORD@HOST/PATH", nil)
	case strings.HasPrefix(status, "403"):
		const hint = "check the user's permissions and whether the account is locked"
		return u.NewError("open", capture.ErrDenied, "the camera denies access ("+status+")", hint, nil)
	}
	return u.NewError("open", capture.ErrDenied, "the camera refused user name or password", refusedHint, nil)
}

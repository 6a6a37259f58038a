package source

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"

	"github.com/icholy/digest"
)

// credentials are the user name and password of an HTTP camera.
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

// authorization returns the Authorization header of a GET request for the server's challenges: digest if offered, otherwise basic. It is
// empty if the server supports neither.
func (c credentials) authorization(challenges http.Header, uri string) string {
	if challenge, err := digest.FindChallenge(challenges); err == nil {
		made, err := digest.Digest(challenge, digest.Options{Method: http.MethodGet, URI: uri, Username: c.user, Password: c.password, Count: 1})
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

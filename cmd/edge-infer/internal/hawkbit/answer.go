package hawkbit

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// link is an address that the server wants to be asked, relative to the request or not.
type link struct {
	Href string `json:"href"`
}

// resource is the answer to a poll.
type resource struct {
	Config struct {
		Polling struct {
			Sleep string `json:"sleep"` // HH:MM:SS
		} `json:"polling"`
	} `json:"config"`
	Links struct {
		Attributes   *link `json:"configData"`
		Deployment   *link `json:"deploymentBase"`
		Cancel       *link `json:"cancelAction"`
		Confirmation *link `json:"confirmationBase"`
	} `json:"_links"`
}

// The shortest and the longest time between two polls, and that of a server that names none.
const (
	minPause     = time.Second
	maxPause     = 24 * time.Hour
	defaultPause = 5 * time.Minute
)

// pause returns the time until the next poll.
func (r *resource) pause() time.Duration {
	parts := strings.Split(r.Config.Polling.Sleep, ":")
	if len(parts) != 3 {
		return defaultPause
	}
	seconds := 0
	for _, part := range parts {
		count, err := strconv.ParseUint(part, 10, 16)
		if err != nil {
			return defaultPause
		}
		seconds = 60*seconds + int(count)
	}
	return min(max(time.Duration(seconds)*time.Second, minPause), maxPause)
}

// deployment is an action: what the server wants to be installed.
type deployment struct {
	ID         string `json:"id"`
	Deployment struct {
		Update string  `json:"update"`            // skip, attempt or forced
		Window string  `json:"maintenanceWindow"` // available or unavailable, empty for none
		Chunks []chunk `json:"chunks"`
	} `json:"deployment"`
}

type chunk struct {
	Artifacts []artifact `json:"artifacts"`
}

// artifact is a file of an action.
type artifact struct {
	Name   string            `json:"filename"`
	Hashes map[string]string `json:"hashes"`
	Links  struct {
		TLS   *link `json:"download"`
		Plain *link `json:"download-http"`
	} `json:"_links"`
}

// mayInstall reports whether the device may install the action now, and not only load it.
func (d *deployment) mayInstall() bool {
	return d.Deployment.Update != "skip" && d.Deployment.Window != "unavailable"
}

// bundle returns the one file of the action.
func (d *deployment) bundle() (*artifact, error) {
	var all []*artifact
	for c := range d.Deployment.Chunks {
		files := d.Deployment.Chunks[c].Artifacts
		for f := range files {
			all = append(all, &files[f])
		}
	}
	if len(all) != 1 {
		return nil, fmt.Errorf("the action has %d files instead of one, the bundle of edge-infer bundle make", len(all))
	}
	return all[0], nil
}

// contents names what the file holds, as well as the server says; see bundle.Source.
func (a *artifact) contents() string {
	for _, kind := range []string{"sha256", "sha1", "md5"} {
		if _, err := hex.DecodeString(a.Hashes[kind]); err == nil && a.Hashes[kind] != "" {
			return kind + ":" + a.Hashes[kind]
		}
	}
	return ""
}

// address returns where the file is, with TLS if the server offers that.
func (a *artifact) address(from *url.URL) (*url.URL, error) {
	for _, offered := range []*link{a.Links.TLS, a.Links.Plain} {
		if offered != nil {
			return offered.resolve(from)
		}
	}
	return nil, fmt.Errorf("the file %.80q of the action has no address", a.Name)
}

// cancellation takes an action back.
type cancellation struct {
	ID     string `json:"id"`
	Cancel struct {
		Stop string `json:"stopId"` // the action
	} `json:"cancelAction"`
}

// resolve returns an address that a link in the answer to a request leads to.
func (l *link) resolve(from *url.URL) (*url.URL, error) {
	to, err := url.Parse(l.Href)
	if err != nil {
		return nil, errors.New("the server has sent an address that cannot be read")
	}
	to = from.ResolveReference(to)
	if (to.Scheme != "https" && to.Scheme != "http") || to.Host == "" || to.User != nil {
		return nil, errors.New("the server has sent an address that is not of http or https")
	}
	return to, nil
}

// parse reads an answer and requires an id of an action where there is one.
func parse(data []byte, to any) error {
	if err := json.Unmarshal(data, to); err != nil {
		return errors.New("the answer is not that of a hawkBit server (hawkbit.url is https://HOST/TENANT)")
	}
	var id string
	switch answer := to.(type) {
	case *deployment:
		id = answer.ID
	case *cancellation:
		id = answer.Cancel.Stop
		if len(answer.ID) > maxID {
			id = ""
		}
	default:
		return nil
	}
	if id == "" || len(id) > maxID {
		return errors.New("the server has sent an action without an id")
	}
	return nil
}

// maxID is the length of an id in bytes.
const maxID = 64

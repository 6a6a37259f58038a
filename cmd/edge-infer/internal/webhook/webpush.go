package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"syscall"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/httperror"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/webpush"
)

// pushAge is how long a notification is worth something: a browser that is away for longer does not get it.
const pushAge = time.Hour

// pushed is what the page's service worker gets.
type pushed struct {
	Title string `json:"title"`
	Text  string `json:"text"`
	Tag   string `json:"tag"` // of the object: a later notification about it takes the place of this one
}

// push sends an event to the push service of a browser, encrypted for the browser (RFC 8030, 8291, 8292). Errors do not contain the
// address.
func (s *Sender) push(ctx context.Context, body []byte) (*http.Response, error) {
	var event struct {
		Data struct {
			notice
			Object string `json:"object"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &event); err != nil {
		return nil, err
	}
	message, err := json.Marshal(pushed{Title: event.Data.Camera, Text: event.Data.text(), Tag: event.Data.Object})
	if err != nil {
		return nil, err
	}
	keys, err := webpush.ParseKeys(string(s.Secret))
	if err != nil {
		return nil, err
	}
	identity, err := webpush.OpenIdentity(s.Identity)
	if err != nil {
		return nil, err
	}
	authorization, err := identity.Authorization(s.URL, time.Now())
	if err != nil {
		return nil, err
	}
	encrypted, err := keys.Encrypt(message)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, bytes.NewReader(encrypted))
	if err != nil {
		return nil, httperror.Reason(err, "the receiver")
	}
	request.Header.Set("Authorization", authorization)
	request.Header.Set("Content-Encoding", "aes128gcm")
	request.Header.Set("Content-Type", "application/octet-stream")
	request.Header.Set("TTL", strconv.Itoa(int(pushAge.Seconds())))
	request.Header.Set("Urgency", "high") // a phone that sleeps gets it at once
	answer, err := s.client.Do(request)
	return answer, httperror.Reason(err, "the receiver")
}

// publicDialer connects to addresses of the internet only: the address of a push service comes from a browser, and its name may be one of
// this network.
func publicDialer() *net.Dialer {
	return &net.Dialer{Timeout: timeout, Control: func(_, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return err
		}
		ip := to.Addr().Unmap()
		if !ip.IsGlobalUnicast() || ip.IsPrivate() {
			return fmt.Errorf("%s is no address of the internet, where push services are", ip)
		}
		return nil
	}}
}

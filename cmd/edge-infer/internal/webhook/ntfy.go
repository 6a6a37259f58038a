package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/httperror"
	"github.com/edge-infer/edge-infer/mqtt/credentials"
)

// notice is what a notification says of an event; the fields are those of payload.Event.
type notice struct {
	Type, Camera, Label, Zone, Line, Direction string
	Score                                      float64
	Dwell                                      float64 `json:"dwell_s"`
	Duration                                   float64 `json:"duration_s"`
}

// text is the event as a sentence.
func (n *notice) text() string {
	seconds := func(s float64) string { return (time.Duration(math.Round(s)) * time.Second).String() }
	switch n.Type {
	case "new":
		return fmt.Sprintf("%s, %.0f %%", n.Label, 100*n.Score)
	case "enter":
		return fmt.Sprintf("%s has entered %s", n.Label, n.Zone)
	case "loiter":
		return fmt.Sprintf("%s has been in %s for %s", n.Label, n.Zone, seconds(n.Dwell))
	case "leave":
		return fmt.Sprintf("%s has left %s after %s", n.Label, n.Zone, seconds(n.Dwell))
	case "cross":
		return fmt.Sprintf("%s has crossed %s (%s)", n.Label, n.Line, n.Direction)
	case "end":
		return fmt.Sprintf("%s has gone after %s", n.Label, seconds(n.Duration))
	}
	return n.Label + " is still there"
}

// ntfy publishes an event on a topic of ntfy (https://docs.ntfy.sh/publish): the camera as the title, a sentence, and the image as an
// attachment if there is one. Errors do not contain the address: who knows the topic can read it.
func (s *Sender) ntfy(ctx context.Context, body, image []byte) (*http.Response, error) {
	var event struct {
		Data notice `json:"data"`
	}
	if err := json.Unmarshal(body, &event); err != nil {
		return nil, err
	}
	text := event.Data.text()
	content := image
	if len(image) == 0 {
		content = []byte(text)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, s.URL, bytes.NewReader(content))
	if err != nil {
		return nil, httperror.Reason(err, "the receiver")
	}
	token, err := credentials.ReadSecret(s.Secret, s.SecretFile)
	if err != nil {
		return nil, fmt.Errorf("access token: %w", err)
	}
	if token = strings.TrimSpace(token); token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	request.Header.Set("User-Agent", "edge-infer/"+s.Version)
	request.Header.Set("Title", header(event.Data.Camera))
	if len(image) > 0 {
		request.Header.Set("Message", header(text))
		request.Header.Set("Filename", "object.jpg")
	}
	answer, err := s.client.Do(request)
	return answer, httperror.Reason(err, "the receiver")
}

// header encodes text for a header as RFC 2047 specifies, which ntfy decodes.
func header(text string) string { return mime.QEncoding.Encode("utf-8", text) }

// refusesImage reports whether an answer to a notification with an image may be one to the image, which is too large or not wanted.
func refusesImage(status int) bool {
	return status == http.StatusBadRequest || status == http.StatusRequestEntityTooLarge || status == http.StatusInsufficientStorage
}

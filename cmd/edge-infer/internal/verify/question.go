package verify

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/edge-infer/edge-infer/mqtt/payload"
)

// question is what is asked about an object.
type question struct {
	event payload.Event
	image []byte // JPEG, empty for none
	until time.Time
}

// body returns the event in the form of webhooks, with the image in base64: the signature covers both, and receivers need no parser but
// that of JSON.
func (q *question) body(device string) []byte {
	buf := make([]byte, 0, 1024+base64.StdEncoding.EncodedLen(len(q.image)))
	buf = append(buf, `{"type":"event.verify","timestamp":"`...)
	buf = q.event.Time.UTC().AppendFormat(buf, time.RFC3339Nano)
	buf = append(buf, `","data":`...)
	buf = q.event.AppendJSON(buf, device, "", 0)
	if len(q.image) > 0 {
		buf = append(buf[:len(buf)-1], `,"image":"`...)
		buf = base64.StdEncoding.AppendEncode(buf, q.image)
		buf = append(buf, `"}`...)
	}
	return append(buf, '}')
}

// awayError is why there is no answer if the service is not there, so that others need not be asked for.
type awayError struct{ error }

// put asks the service.
func (g *Gate) put(ctx context.Context, q *question) (answer, error) {
	response, err := g.Endpoint.Post(ctx, q.event.ID, q.body(g.Device))
	if err != nil {
		return answer{}, awayError{err}
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, answerLimit+1))
	switch {
	case response.StatusCode >= http.StatusInternalServerError || response.StatusCode == http.StatusTooManyRequests:
		return answer{}, awayError{fmt.Errorf("it answers %d", response.StatusCode)}
	case response.StatusCode < 200 || response.StatusCode > 299:
		return answer{}, fmt.Errorf("it answers %d", response.StatusCode)
	case err != nil && ctx.Err() != nil:
		return answer{}, awayError{errors.New("its answer does not end in time")}
	case err != nil:
		return answer{}, errors.New("its answer is incomplete")
	}
	return parseAnswer(body)
}

package outputs

import (
	"time"

	"github.com/edge-infer/edge-infer/mqtt/payload"
)

// Job publishes how far this device has come with a job; nil removes what was published of it.
func (o *Outputs) Job(id string, update *payload.JobUpdate) {
	if o.client == nil {
		return
	}
	var message []byte
	if update != nil {
		message = update.AppendJSON(nil, o.Settings.Device, time.Now())
	}
	o.client.Job(id, message)
}

package outputs

import (
	"time"

	"github.com/edge-infer/edge-infer/mqtt"
	"github.com/edge-infer/edge-infer/mqtt/payload"
)

// Jobs are the jobs that this device gets over MQTT.
type Jobs struct {
	Receive func(message []byte) // takes messages of the topic of jobs

	client *mqtt.Client // nil without MQTT
}

// Report publishes how far this device has come with a job; nil removes what was published of it.
func (j *Jobs) Report(id string, update *payload.JobUpdate) {
	if j.client == nil {
		return
	}
	var message []byte
	if update != nil {
		message = update.AppendJSON(nil, j.client.Device, time.Now())
	}
	j.client.Job(id, message)
}

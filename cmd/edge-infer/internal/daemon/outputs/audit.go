package outputs

import (
	"strings"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/audit"
)

// changed records a command that was carried out; the client has logged it. MQTT does not disclose who has sent it.
func (o *Outputs) changed(camera, control, value, broker string) {
	o.audit.Record(audit.Entry{Over: "mqtt", From: broker, What: strings.TrimSpace(camera + " " + control + " " + value)})
}

package diagnose

import (
	"context"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/site"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/webhook"
)

// webhooks checks the signing secret of each webhook, that its receiver accepts connections, and what runs of the daemon have recorded. It
// sends no event.
func (d *Doctor) webhooks(ctx context.Context) (checks []Check) {
	settings := site.ResolveOutputs(d.Config)
	for i := range settings.Webhooks {
		checks = append(checks, d.webhook(ctx, webhook.New(settings, &settings.Webhooks[i])))
	}
	return checks
}

func (d *Doctor) webhook(ctx context.Context, sender *webhook.Sender) Check {
	name := "webhook " + sender.Name
	err := sender.CheckSecret()
	if err != nil {
		return fail(name, `write one into the file of secret_file: echo "whsec_$(openssl rand -base64 32)"`, "%v", err)
	}
	record := sender.ReadRecord()
	if record.Disabled {
		return fail(name, "remove it, or give it another url", "disabled: its receiver has answered 410 Gone")
	}
	ctx, cancel := context.WithTimeout(ctx, d.Timeout)
	defer cancel()
	err = sender.Reach(ctx)
	if err != nil {
		return warn(name, "check its url; events wait for 3 days", "%v", err)
	}
	if record.Dead > 0 {
		return warn(name, "see the receiver's log", "%d events were not delivered, the last one at %s: %s", record.Dead,
			record.Last.Local().Format(time.DateTime), record.Reason)
	}
	return ok(name, "the receiver accepts connections")
}

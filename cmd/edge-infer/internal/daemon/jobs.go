package daemon

import (
	"strconv"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/bundle"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/catalogue"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/update"
	"github.com/edge-infer/edge-infer/mqtt/payload"
)

// reportJob reports to the sender of a job how far this device has come with it.
func (r *run) reportJob(sender update.Sender, job string, report *payload.JobUpdate) {
	if sender == update.HawkBit {
		r.hawkbit.Report(job, report)
	} else {
		r.outputs.Jobs.Report(job, report)
	}
}

// attributes describe this device for an update server. sw_version is the name that SWUpdate's servers know.
func (r *run) attributes() map[string]string {
	all := map[string]string{"edge_infer": r.Version}
	store, err := catalogue.Open()
	if err != nil {
		return all
	}
	if b := bundle.Installed(store, r.control.Config().Model.Path); b != nil {
		all["model"], all["sw_version"] = b.Name, strconv.FormatInt(b.Version, 10)
	}
	return all
}

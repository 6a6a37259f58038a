package outputs

import (
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/record"
)

// openClips makes the recorder of these cameras ready. It is there also while none is recorded, because a reload may turn one on.
func (o *Outputs) openClips(cameras []record.Camera) {
	if o.store == nil {
		return
	}
	c := &o.Config.Clips
	o.recorder = &record.Recorder{
		Directory: c.Directory, Index: o.store, Before: c.Before, After: c.After, Cooldown: c.Cooldown, MaxBytes: int64(c.MaxMB) << 20,
		MaxAge: time.Duration(c.Days) * 24 * time.Hour, Sync: c.Sync, Logger: o.Logger,
	}
	o.recorder.Open(cameras)
}

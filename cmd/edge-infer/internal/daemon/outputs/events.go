package outputs

import (
	"context"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/site"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/store"
)

// eventStore is the event store as reloads see it.
type eventStore struct{ of *Outputs }

// newStore returns the event store of the settings, nil if events are not stored.
func newStore(o *Outputs) *store.Store {
	e := &o.Settings.Events
	if !o.Settings.Stored() {
		return nil
	}
	return &store.Store{
		Directory: e.Directory, ClipDirectory: o.Settings.Clips.Directory, Days: e.Days, MaxBytes: int64(e.MaxMB) << 20, Logger: o.Logger,
		Uploads: uploadKinds(&o.Settings.Upload),
	}
}

// Compare implements output. Another directory takes a restart: images, the index of clips and the queue of uploads are in it, and requests
// of the page, clips that are being recorded and uploads in progress use them.
func (e eventStore) Compare(change *site.OutputChange) site.Change {
	was, next := &change.Was.Events, &change.Next.Events
	if was.Directory != next.Directory {
		return unlike("events", true, site.Restart, "events.directory")
	}
	return unlike("events", *was != *next, site.Tune, "")
}

// Files implements output.
func (e eventStore) Files(*site.Outputs) []string { return nil }

// Reload implements output.
func (e eventStore) Reload(_ context.Context, change *site.OutputChange) error {
	if e.of.store != nil {
		e.of.store.SetLimits(change.Next.Events.Days, int64(change.Next.Events.MaxMB)<<20)
	}
	return nil
}

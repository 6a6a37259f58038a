package outputs

import (
	"context"
	"errors"
	"io"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/sink"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/site"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/web"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/webhook"
)

// webhooks are the senders of webhooks. Their settings change while frames arrive.
type webhooks struct {
	outputs *Outputs
	sink    sink.Webhooks

	mu      sync.Mutex // held while they are opened, changed or closed
	running []*runningWebhook
}

// runningWebhook is a sender with the settings that it was made of. stop ends its Run.
type runningWebhook struct {
	settings config.Webhook
	sender   *webhook.Sender
	stop     func()
}

// Open opens the configured senders.
func (w *webhooks) Open() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.set(w.outputs.Settings)
}

// Compare implements output. Secrets are read for each attempt, so that files do not matter.
func (w *webhooks) Compare(change *site.OutputChange) site.Change {
	return unlike("webhooks", !reflect.DeepEqual(change.Was.Webhooks, change.Next.Webhooks), site.Reopen, "")
}

// Files implements output.
func (w *webhooks) Files(*site.Outputs) []string { return nil }

// Reload implements output. Webhooks that are the same go on undisturbed; changed ones keep their queues.
func (w *webhooks) Reload(_ context.Context, change *site.OutputChange) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.set(change.Next); err != nil {
		return errors.Join(err, w.set(change.Was))
	}
	return nil
}

// set opens, changes and closes senders until they are those of the settings. The lock is held. After an error some of them are.
func (w *webhooks) set(settings *site.Outputs) error {
	var next []*runningWebhook
	gone := slices.Clone(w.running)
	defer func() {
		w.running = append(next, gone...) // the rest is there after an error alone
		w.publish()
	}()
	for i := range settings.Webhooks {
		hook := &settings.Webhooks[i]
		at := slices.IndexFunc(gone, func(r *runningWebhook) bool { return r.settings.Name == hook.Name })
		var before *runningWebhook
		if at >= 0 {
			before = gone[at]
		}
		opened, err := w.open(settings, hook, before)
		if err != nil {
			return err
		}
		next = append(next, opened)
		if before != nil {
			gone = slices.Delete(gone, at, at+1)
		}
	}
	w.running = next
	w.publish() // no event for what is closed now
	removed := gone
	gone = nil
	var errs []error
	for _, r := range removed {
		r.stop()
		errs = append(errs, r.sender.Close())
	}
	return errors.Join(errs...)
}

// open returns the sender of a webhook: the one that runs if it is the same, or else a new one, with the queue of the one that runs. The
// lock is held.
func (w *webhooks) open(settings *site.Outputs, hook *config.Webhook, before *runningWebhook) (*runningWebhook, error) {
	if before != nil && reflect.DeepEqual(&before.settings, hook) {
		return before, nil
	}
	sender := webhook.New(settings, hook)
	sender.Version, sender.Logger = w.outputs.Version, w.outputs.Logger
	if hook.Format == config.WebPush {
		sender.Gone = func() { w.forget(hook.URL) }
	}
	if w.outputs.store != nil {
		sender.Links, sender.Image = w.links, w.crop
	}
	if before == nil {
		if err := sender.Open(); err != nil {
			return nil, err
		}
	} else {
		if err := before.sender.HandOver(sender); err != nil {
			return nil, err
		}
		before.stop()
	}
	return &runningWebhook{settings: *hook, sender: sender, stop: w.outputs.background.Start(sender.Run)}, nil
}

// publish makes the running senders those that events are handed over to. The lock is held.
func (w *webhooks) publish() {
	var senders []*webhook.Sender
	for _, r := range w.running {
		senders = append(senders, r.sender)
	}
	w.sink.Set(senders)
}

// Close closes the queues. Run of the senders has ended, or they never ran.
func (w *webhooks) Close() error {
	var errs []error
	for _, sender := range w.sink.Senders() {
		errs = append(errs, sender.Close())
	}
	return errors.Join(errs...)
}

// Status returns the states of the senders, nil without any. It does not wait for a reload.
func (w *webhooks) Status() (all []webhook.Status) {
	for _, sender := range w.sink.Senders() {
		all = append(all, sender.Status())
	}
	return all
}

// links returns the paths of the images and the clip of an object that are stored so far.
func (w *webhooks) links(ctx context.Context, object string) (links webhook.Links) {
	w.outputs.store.Settle() // an event is stored before it is published
	e, err := w.outputs.store.Event(ctx, object)
	if err != nil {
		return links
	}
	links.Frame, links.Crop, links.Clip = web.EventPaths(e)
	return links
}

// imageLimit is how long a notification waits for its image: that of a new object is still being encoded when its event is sent.
const imageLimit = 700 * time.Millisecond

// crop returns the JPEG of an object alone, nil if none is stored within imageLimit.
func (w *webhooks) crop(ctx context.Context, object string) []byte {
	ctx, cancel := context.WithTimeout(ctx, imageLimit)
	defer cancel()
	for {
		if image := w.storedCrop(ctx, object); image != nil {
			return image
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// storedCrop returns the JPEG of an object alone, nil if none is stored so far.
func (w *webhooks) storedCrop(ctx context.Context, object string) []byte {
	w.outputs.store.Settle() // an event is stored before it is published
	e, err := w.outputs.store.Event(ctx, object)
	if err != nil {
		return nil
	}
	file, err := w.outputs.store.CropFile(e)
	if err != nil {
		return nil
	}
	defer file.Close()
	image, err := io.ReadAll(file)
	if err != nil {
		return nil
	}
	return image
}

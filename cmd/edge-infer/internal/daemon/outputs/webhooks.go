package outputs

import (
	"context"
	"io"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/sink"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/web"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/webhook"
)

// openWebhooks opens the queues of the webhooks.
func (o *Outputs) openWebhooks() error {
	if len(o.Config.Webhooks) == 0 {
		return nil
	}
	hooks := &sink.Webhooks{}
	for i := range o.Config.Webhooks {
		sender := webhook.New(o.Config, &o.Config.Webhooks[i])
		sender.Version, sender.Logger = o.Version, o.Logger
		if o.store != nil {
			sender.Links, sender.Image = o.links, o.crop
		}
		if err := sender.Open(); err != nil {
			return err
		}
		hooks.Senders = append(hooks.Senders, sender)
	}
	o.webhooks = hooks
	return nil
}

// links returns the paths of the images and the clip of an object that are stored so far.
func (o *Outputs) links(ctx context.Context, object string) (links webhook.Links) {
	o.store.Settle() // an event is stored before it is published
	e, err := o.store.Event(ctx, object)
	if err != nil {
		return links
	}
	links.Frame, links.Crop, links.Clip = web.EventPaths(e)
	return links
}

// imageLimit is how long a notification waits for its image: that of a new object is still being encoded when its event is sent.
const imageLimit = 700 * time.Millisecond

// crop returns the JPEG of an object alone, nil if none is stored within imageLimit.
func (o *Outputs) crop(ctx context.Context, object string) []byte {
	ctx, cancel := context.WithTimeout(ctx, imageLimit)
	defer cancel()
	for {
		if image := o.storedCrop(ctx, object); image != nil {
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
func (o *Outputs) storedCrop(ctx context.Context, object string) []byte {
	o.store.Settle() // an event is stored before it is published
	e, err := o.store.Event(ctx, object)
	if err != nil {
		return nil
	}
	file, err := o.store.CropFile(e)
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

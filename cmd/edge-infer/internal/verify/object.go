package verify

import (
	"time"
	"unsafe"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/sink"
)

// key identifies an object.
type key struct{ camera, id string }

// state is how far an object is.
type state int

const (
	waiting state = iota // to be asked about
	asked
	decided
)

// object is one whose events are held, or have been.
type object struct {
	key
	state    state
	answer   answer
	over     bool // its last event has come
	restored bool // an earlier run has held it

	held    []*sink.Event // in order
	numbers []uint64      // of its records in the journal
	bytes   int           // of what is held
	crop    []byte        // JPEG that the service gets

	image   *sink.ObjectImage // the newest one that is held, nil for none
	deliver func(*sink.ObjectImage)

	// deadline is when the events are published without an answer; zero for a restored object, which waits until it was asked about.
	deadline   time.Time
	imageUntil time.Time // it is asked about without an image from then on
}

// add holds an event.
func (o *object) add(e *sink.Event) {
	o.held = append(o.held, e)
	m := &e.Message
	o.bytes += 2*int(unsafe.Sizeof(*e)) + len(m.Embedding) + 16*len(m.Path) + 64*(len(m.Attributes)+len(m.Zones)+len(m.Entered))
}

// hold holds an image in place of an earlier one.
func (o *object) hold(image *sink.ObjectImage, deliver func(*sink.ObjectImage)) {
	if o.image != nil {
		o.bytes -= len(o.image.Crop) + len(o.image.Frame)
	}
	o.image, o.deliver = image, deliver
	o.bytes += len(image.Crop) + len(image.Frame)
}

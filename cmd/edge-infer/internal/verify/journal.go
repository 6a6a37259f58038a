package verify

import (
	"encoding/json"
	"log/slog"
	"math"
	"strconv"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/sink"
	"github.com/edge-infer/edge-infer/mqtt/spool"
)

// journal keeps held events on disk, so that they outlast a kill. An object that was decided is marked, because a spool forgets in order
// only. The gate's lock guards it.
type journal struct {
	records spool.Spool
	run     string  // with a record's number it makes the id of its event
	pending []entry // records that are in the spool, oldest first
}

// entry is a record of the spool.
type entry struct {
	number uint64
	over   bool // it is needed no more
}

// record is the content of a record, for the object of a camera. It has an event or an image, or marks the object as decided.
type record struct {
	Camera, Object string
	ID             string // of Event
	Event          *sink.Event
	Image          []byte // JPEG of the object
	Decided        bool
}

// imageLimit is the size of an image in bytes above which it is not written: with base64 it must fit into a record.
const imageLimit = spool.RecordLimit / 2

// open opens the spool. It returns the objects that an earlier run has held and not decided, in order.
func (j *journal) open(logger *slog.Logger) ([]*object, error) {
	j.run = strconv.FormatInt(time.Now().UnixMicro(), 36) + "v" // the last letter sets it apart from the runs of other queues
	j.records.Logger, j.records.Notify = logger, func() {}
	if err := j.records.Open(); err != nil {
		return nil, err
	}
	var all []*object
	known := map[key]*object{}
	for after := uint64(0); ; {
		next, found := j.records.Next(after, nil)
		if !found {
			break
		}
		after = next.Number
		j.pending = append(j.pending, entry{number: next.Number})
		var r record
		if err := json.Unmarshal(next.Payload, &r); err != nil {
			logger.Warn("verify: a held event of an earlier run cannot be read", "error", err)
			j.forget(next.Number)
			continue
		}
		k := key{r.Camera, r.Object}
		o := known[k]
		if o == nil {
			o = &object{key: k, restored: true}
			known[k] = o
			all = append(all, o)
		}
		j.restore(o, &r, next.Number)
	}
	held := all[:0]
	for _, o := range all {
		if o.state == decided || len(o.held) == 0 {
			j.forget(o.numbers...)
			continue
		}
		held = append(held, o)
	}
	return held, nil
}

// restore adds what a record says to its object.
func (j *journal) restore(o *object, r *record, number uint64) {
	o.numbers = append(o.numbers, number)
	switch {
	case r.Decided:
		o.state = decided
	case r.Event != nil:
		r.Event.Message.ID = r.ID
		if r.Event.Stored != nil {
			r.Event.Stored.Ended = true // nobody will see its end
		}
		o.add(r.Event)
	default:
		o.crop = r.Image
	}
}

// event writes an event, which gets its id.
func (j *journal) event(o *object, e *sink.Event) error {
	r := record{Camera: o.camera, Object: o.id, Event: e}
	if g := e.Message.Ground; g != nil && !finite(g.Speed, g.MeanSpeed, g.Distance, g.Heading) {
		without := *e
		without.Message.Ground = nil
		r.Event = &without
	}
	return j.write(o, &r, func(number uint64) {
		r.ID = j.run + "-" + strconv.FormatUint(number, 10)
		e.Message.ID = r.ID
	})
}

// finite reports whether JSON has the numbers.
func finite(numbers ...float64) bool {
	for _, n := range numbers {
		if math.IsNaN(n) || math.IsInf(n, 0) {
			return false
		}
	}
	return true
}

// image writes the image of an object, unless it is too large: it is asked about without an image then after a kill.
func (j *journal) image(o *object, jpeg []byte) error {
	if len(jpeg) > imageLimit {
		return nil
	}
	return j.write(o, &record{Camera: o.camera, Object: o.id, Image: jpeg}, func(uint64) {})
}

func (j *journal) write(o *object, r *record, numbered func(number uint64)) (err error) {
	number := j.records.Offer("", func(buf []byte, number uint64) []byte {
		numbered(number)
		var text []byte
		text, err = json.Marshal(r)
		return append(buf, text...)
	})
	o.numbers = append(o.numbers, number)
	j.pending = append(j.pending, entry{number: number})
	return err
}

// decide marks an object as decided, before its records are forgotten in order.
func (j *journal) decide(o *object) error {
	err := j.write(o, &record{Camera: o.camera, Object: o.id, Decided: true}, func(uint64) {})
	j.forget(o.numbers...)
	return err
}

// forget removes records, the oldest first, as far as all before them are needed no more.
func (j *journal) forget(numbers ...uint64) {
	over := make(map[uint64]bool, len(numbers))
	for _, number := range numbers {
		over[number] = true
	}
	for i := range j.pending {
		j.pending[i].over = j.pending[i].over || over[j.pending[i].number]
	}
	for len(j.pending) > 0 && j.pending[0].over {
		j.records.Acknowledge(j.pending[0].number)
		j.pending = j.pending[1:]
	}
}

package zone

import "time"

// Kind is the type of an event.
type Kind string

// The kinds of events. Every reported object has one New, any number of Update, and one End, in this order; the others occur in between.
const (
	New    Kind = "new"
	Update Kind = "update"
	End    Kind = "end"
	Enter  Kind = "enter"  // a zone
	Leave  Kind = "leave"  // a zone
	Loiter Kind = "loiter" // in a zone
	Cross  Kind = "cross"  // a line
)

// Event is one event of one object.
type Event struct {
	Kind Kind
	Seq  uint64    // of the frame
	Time time.Time // capture time of the frame
	// Object is the object as of the event's frame, valid until the next call of Update or Finish.
	Object *Object
	// Zone or Line is the index in the configuration, -1 if the event has none.
	Zone, Line int
	Direction  Direction     // of a Cross event
	Dwell      time.Duration // of a Leave or Loiter event: duration of the stay so far
}

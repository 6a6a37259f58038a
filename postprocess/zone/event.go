package zone

import "time"

// Kind says what happened.
type Kind string

// The kinds. Every object that is reported has one New, any number of Update, and one End, in this order; the others lie between.
const (
	New    Kind = "new"
	Update Kind = "update"
	End    Kind = "end"
	Enter  Kind = "enter"  // a zone
	Leave  Kind = "leave"  // a zone
	Loiter Kind = "loiter" // in a zone
	Cross  Kind = "cross"  // a line
)

// Event is one thing that happened to one object.
type Event struct {
	Kind Kind
	Seq  uint64    // of the frame
	Time time.Time // capture time of the frame
	// Object is the object as of the event's frame, valid until the next call of Update or Finish.
	Object *Object
	// Zone or Line is the number in the configuration, -1 when the event has none.
	Zone, Line int
	Direction  Direction     // of a Cross
	Dwell      time.Duration // of a Leave or Loiter: the stay so far
}

package payload

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"
)

// Messages that are sent once a second or less are encoded by encoding/json; those of frames and events append their bytes.

// Header holds the fields that every message begins with, see NewHeader.
type Header struct {
	Version int       `json:"v"`
	Device  string    `json:"device"`
	Time    timestamp `json:"time"`
	Clock   *bool     `json:"clock_set,omitempty"` // false if the clock was not set
}

// NewHeader returns the header of a message of a device.
func NewHeader(device string, now time.Time) Header {
	h := Header{Version: 1, Device: device, Time: timestamp{now}}
	if now.Unix() < clockFloor {
		h.Clock = new(bool)
	}
	return h
}

// AppendMessage appends a message, which begins with a Header and has no value that cannot be encoded, to buf and returns it.
func AppendMessage(buf []byte, message any) []byte {
	out := bytes.NewBuffer(buf)
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(message); err != nil {
		panic(err)
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}

// byName returns an object with a member for each element.
func byName[E, V any](all []E, member func(*E) (string, V)) map[string]V {
	object := make(map[string]V, len(all))
	for i := range all {
		name, value := member(&all[i])
		object[name] = value
	}
	return object
}

// Decimal is a number with at most three decimals in messages, see AppendDecimal.
type Decimal float64

// MarshalJSON implements json.Marshaler.
func (d Decimal) MarshalJSON() ([]byte, error) { return AppendDecimal(nil, float64(d)), nil }

func milliseconds(d time.Duration) Decimal { return Decimal(d) / Decimal(time.Millisecond) }

// share is a number from 0 to 1 with four decimals in messages.
type share float64

func (s share) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, float64(s), 'f', 4, 64), nil
}

// timestamp is a time in UTC with microseconds in messages.
type timestamp struct{ time.Time }

func (t timestamp) MarshalJSON() ([]byte, error) { return appendTime(nil, t.Time), nil }

// uptime returns the whole seconds from start to now; an unset start counts as now.
func uptime(start, now time.Time) int64 {
	if start.IsZero() {
		return 0
	}
	return int64(now.Sub(start) / time.Second)
}

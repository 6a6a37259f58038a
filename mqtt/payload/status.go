package payload

import (
	"strings"
	"time"
)

// Status is the retained payload of the status topic: what runs, on what, and why.
type Status struct {
	Version   string
	Started   time.Time
	Backend   string // engine in use
	Reason    string // why it was chosen
	Hardware  string // device of the backend
	Model     string
	Head      string // recognised layout of the outputs, with the reason
	Precision string
	Accuracy  *Accuracy // nil when nothing is known of it
	Cameras   []CameraStatus
	Runtime   Runtime // left out when it has no processors
	// ConfigurationError is why the configuration that was read last is not in force; empty when it is.
	ConfigurationError string
	Update             *Update // nil where models are not updated
}

// Update is how the model is kept current from its source of bundles.
type Update struct {
	Model   string `json:"model"`
	Version int64  `json:"version"` // installed; 0 if the model does not come from a bundle
	Phase   string `json:"phase"`   // current, downloading, collecting, judging or trial
	// Candidate is the version that is being received or tried, 0 for none.
	Candidate int64  `json:"candidate,omitempty"`
	Error     string `json:"error,omitempty"` // why the source has given no bundle; empty if it has
	// Refused is the newest version that was tried on this device, and Reason why it was refused; 0 if it was installed.
	Refused int64  `json:"refused,omitempty"`
	Reason  string `json:"reason,omitempty"`
	// Agreement is the share of objects that the last new model and the one before have both found on images of the cameras; nil without a
	// comparison.
	Agreement *float64 `json:"agreement,omitempty"`
}

// Runtime is how the process uses its machine.
type Runtime struct {
	Processors  int    `json:"processors"`   // of Go
	GC          int    `json:"gc_percent"`   // GOGC, below 0 for off
	MemoryLimit int64  `json:"memory_limit"` // of what Go holds, in bytes; 0 for none
	Capture     string `json:"capture"`      // how the threads run that wait for live cameras
}

// Accuracy is the comparison of the model with its FP32 original before it came into service.
type Accuracy struct {
	Precision string
	Passed    bool
	MatchRate float64 // boxes that both see, of those that either sees
	Boxes     int     // that the original saw
	Flipped   int     // seen with another class
	Images    int
	Time      time.Time
	// Labelled means that the images had labels; the mean average precisions are those of the model and of its original.
	Labelled                                 bool
	MAP50, MAP, ReferenceMAP50, ReferenceMAP float64
	// Refused are the precisions that were tried before.
	Refused []RefusedPrecision
}

// RefusedPrecision is a precision that lost too much of the accuracy.
type RefusedPrecision struct {
	Precision string
	Reasons   []string
}

// CameraStatus is one camera's part of Status.
type CameraStatus struct {
	Name  string
	State string // connecting, running, stalled, lost, waiting, hung, ended, failed
	Error string // why, when it does not run
	Since time.Time
	// While it does not run: when its last image came, if any did, when it is tried again, and how often it has been tried since.
	Last, NextTry time.Time
	Tries         uint64
	// RecordError is why its other stream is not recorded; clips are of the decoded one meanwhile.
	RecordError string
	// Slowdown multiplies the time between two inferences now, for heat or for other cameras' deadlines; 0 and 1 are full speed.
	Slowdown int
	// Hardware is the device that runs the network for this camera; Model is that network, if the cameras have different ones.
	Hardware, Model string
}

type statusMessage struct {
	Header
	Program            string                         `json:"version"`
	Started            string                         `json:"started"`
	Uptime             int64                          `json:"uptime_s"`
	Backend            string                         `json:"backend"`
	Reason             string                         `json:"reason"`
	Hardware           string                         `json:"hardware"`
	Model              string                         `json:"model"`
	Head               string                         `json:"head"`
	Precision          string                         `json:"precision"`
	Accuracy           *accuracyMessage               `json:"accuracy,omitempty"`
	Runtime            Runtime                        `json:"runtime,omitzero"`
	ConfigurationError string                         `json:"configuration_error,omitempty"`
	Update             *Update                        `json:"update,omitempty"`
	Cameras            map[string]cameraStatusMessage `json:"cameras"`
	TooLarge           any                            `json:"too_large,omitempty"`
}

type cameraStatusMessage struct {
	State       string    `json:"state"`
	Since       timestamp `json:"since,omitzero"`
	Last        timestamp `json:"last,omitzero"`
	NextTry     timestamp `json:"next_try,omitzero"`
	Tries       uint64    `json:"tries,omitempty"`
	Slowdown    int       `json:"slowdown,omitempty"`
	Hardware    string    `json:"hardware,omitempty"`
	Model       string    `json:"model,omitempty"`
	Error       string    `json:"error,omitempty"`
	RecordError string    `json:"record_error,omitempty"`
}

type accuracyMessage struct {
	Precision      string           `json:"precision"`
	Passed         bool             `json:"passed"`
	MatchRate      share            `json:"match_rate"`
	Boxes          int              `json:"boxes"`
	Flipped        int              `json:"flipped"`
	Images         int              `json:"images"`
	MAP50          *share           `json:"map50,omitempty"`
	MAP            *share           `json:"map50_95,omitempty"`
	ReferenceMAP50 *share           `json:"reference_map50,omitempty"`
	ReferenceMAP   *share           `json:"reference_map50_95,omitempty"`
	Time           timestamp        `json:"time"`
	Refused        []refusedMessage `json:"refused,omitempty"`
}

type refusedMessage struct {
	Precision string `json:"precision"`
	Reason    string `json:"reason"`
}

// AppendJSON appends the payload to buf and returns it. tooLarge is the object too_large; nil for none.
func (s *Status) AppendJSON(buf []byte, device string, now time.Time, tooLarge any) []byte {
	message := statusMessage{
		Header: NewHeader(device, now), Program: s.Version, Started: s.Started.UTC().Format(time.RFC3339), Uptime: uptime(s.Started, now),
		Backend: s.Backend, Reason: s.Reason, Hardware: s.Hardware, Model: s.Model, Head: s.Head, Precision: s.Precision,
		ConfigurationError: s.ConfigurationError, Update: s.Update, Cameras: byName(s.Cameras, (*CameraStatus).message), TooLarge: tooLarge,
	}
	if s.Accuracy != nil {
		message.Accuracy = s.Accuracy.message()
	}
	if s.Runtime.Processors > 0 {
		message.Runtime = s.Runtime
	}
	return AppendMessage(buf, &message)
}

func (c *CameraStatus) message() (string, cameraStatusMessage) {
	m := cameraStatusMessage{
		State: c.State, Since: timestamp{c.Since}, Last: timestamp{c.Last}, NextTry: timestamp{c.NextTry}, Tries: c.Tries,
		Hardware: c.Hardware, Model: c.Model, Error: c.Error, RecordError: c.RecordError,
	}
	if c.Slowdown > 1 {
		m.Slowdown = c.Slowdown
	}
	return c.Name, m
}

func (a *Accuracy) message() *accuracyMessage {
	m := &accuracyMessage{
		Precision: a.Precision, Passed: a.Passed, MatchRate: share(a.MatchRate), Boxes: a.Boxes, Flipped: a.Flipped, Images: a.Images,
		Time: timestamp{a.Time},
	}
	if a.Labelled {
		m.MAP50, m.MAP = (*share)(&a.MAP50), (*share)(&a.MAP)
		m.ReferenceMAP50, m.ReferenceMAP = (*share)(&a.ReferenceMAP50), (*share)(&a.ReferenceMAP)
	}
	for _, refused := range a.Refused {
		m.Refused = append(m.Refused, refusedMessage{refused.Precision, strings.Join(refused.Reasons, ", ")})
	}
	return m
}

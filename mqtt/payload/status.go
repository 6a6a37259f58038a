package payload

import (
	"strconv"
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
}

// Runtime is how the process uses its machine.
type Runtime struct {
	Processors  int    // of Go
	GC          int    // GOGC, below 0 for off
	MemoryLimit int64  // of what Go holds, in bytes; 0 for none
	Capture     string // how the threads run that wait for live cameras
}

func (r *Runtime) append(buf []byte) []byte {
	for _, field := range [...]struct {
		key   string
		value int64
	}{
		{`,"runtime":{"processors":`, int64(r.Processors)}, {`,"gc_percent":`, int64(r.GC)}, {`,"memory_limit":`, r.MemoryLimit},
	} {
		buf = strconv.AppendInt(append(buf, field.key...), field.value, 10)
	}
	return append(AppendString(append(buf, `,"capture":`...), r.Capture), '}')
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

// AppendJSON appends the payload; client appends further fields, to buf and returns it.
func (s *Status) AppendJSON(buf []byte, device string, now time.Time, client func([]byte) []byte) []byte {
	buf = append(buf, Version+`"device":`...)
	buf = AppendString(buf, device)
	buf = AppendTimeField(buf, now)
	buf = append(buf, `,"version":`...)
	buf = AppendString(buf, s.Version)
	buf = append(buf, `,"started":"`...)
	buf = s.Started.UTC().AppendFormat(buf, time.RFC3339)
	buf = append(buf, `","uptime_s":`...)
	buf = appendSeconds(buf, s.Started, now)
	for _, field := range [...]struct{ key, value string }{
		{`,"backend":`, s.Backend},
		{`,"reason":`, s.Reason},
		{`,"hardware":`, s.Hardware},
		{`,"model":`, s.Model},
		{`,"head":`, s.Head},
		{`,"precision":`, s.Precision},
	} {
		buf = append(buf, field.key...)
		buf = AppendString(buf, field.value)
	}
	if s.Accuracy != nil {
		buf = s.Accuracy.append(append(buf, `,"accuracy":`...))
	}
	if s.Runtime.Processors > 0 {
		buf = s.Runtime.append(buf)
	}
	if s.ConfigurationError != "" {
		buf = AppendString(append(buf, `,"configuration_error":`...), s.ConfigurationError)
	}
	buf = append(buf, `,"cameras":{`...)
	for i, camera := range s.Cameras {
		if i > 0 {
			buf = append(buf, ',')
		}
		buf = AppendString(buf, camera.Name)
		buf = append(buf, `:{"state":`...)
		buf = AppendString(buf, camera.State)
		for _, moment := range [...]struct {
			key string
			at  time.Time
		}{{`,"since":`, camera.Since}, {`,"last":`, camera.Last}, {`,"next_try":`, camera.NextTry}} {
			if !moment.at.IsZero() {
				buf = appendTime(append(buf, moment.key...), moment.at)
			}
		}
		if camera.Tries > 0 {
			buf = strconv.AppendUint(append(buf, `,"tries":`...), camera.Tries, 10)
		}
		if camera.Slowdown > 1 {
			buf = strconv.AppendInt(append(buf, `,"slowdown":`...), int64(camera.Slowdown), 10)
		}
		if camera.Hardware != "" {
			buf = append(buf, `,"hardware":`...)
			buf = AppendString(buf, camera.Hardware)
		}
		if camera.Model != "" {
			buf = append(buf, `,"model":`...)
			buf = AppendString(buf, camera.Model)
		}
		if camera.Error != "" {
			buf = append(buf, `,"error":`...)
			buf = AppendString(buf, camera.Error)
		}
		if camera.RecordError != "" {
			buf = AppendString(append(buf, `,"record_error":`...), camera.RecordError)
		}
		buf = append(buf, '}')
	}
	buf = append(buf, '}')
	buf = client(buf)
	return append(buf, '}')
}

func (a *Accuracy) append(buf []byte) []byte {
	buf = append(buf, `{"precision":`...)
	buf = AppendString(buf, a.Precision)
	buf = append(buf, `,"passed":`...)
	buf = strconv.AppendBool(buf, a.Passed)
	buf = append(buf, `,"match_rate":`...)
	buf = appendShare(buf, a.MatchRate)
	for _, field := range [...]struct {
		key   string
		value int
	}{{`,"boxes":`, a.Boxes}, {`,"flipped":`, a.Flipped}, {`,"images":`, a.Images}} {
		buf = append(buf, field.key...)
		buf = strconv.AppendInt(buf, int64(field.value), 10)
	}
	if a.Labelled {
		for _, field := range [...]struct {
			key   string
			value float64
		}{
			{`,"map50":`, a.MAP50}, {`,"map50_95":`, a.MAP}, {`,"reference_map50":`, a.ReferenceMAP50}, {`,"reference_map50_95":`, a.ReferenceMAP},
		} {
			buf = append(buf, field.key...)
			buf = appendShare(buf, field.value)
		}
	}
	buf = appendTime(append(buf, `,"time":`...), a.Time)
	if len(a.Refused) > 0 {
		buf = append(buf, `,"refused":[`...)
		for i := range a.Refused {
			if i > 0 {
				buf = append(buf, ',')
			}
			buf = append(buf, `{"precision":`...)
			buf = AppendString(buf, a.Refused[i].Precision)
			buf = append(buf, `,"reason":`...)
			buf = AppendString(buf, strings.Join(a.Refused[i].Reasons, ", "))
			buf = append(buf, '}')
		}
		buf = append(buf, ']')
	}
	return append(buf, '}')
}

// appendShare writes a number from 0 to 1 with four decimals.
func appendShare(buf []byte, v float64) []byte { return strconv.AppendFloat(buf, v, 'f', 4, 64) }

// appendSeconds writes the whole seconds from start to now; an unset start counts as now.
func appendSeconds(buf []byte, start, now time.Time) []byte {
	if start.IsZero() {
		return append(buf, '0')
	}
	return AppendDecimal(buf, float64(now.Sub(start)/time.Second))
}

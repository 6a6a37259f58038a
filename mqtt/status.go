package mqtt

import "time"

// Status is the retained payload of the status topic: what runs, on what, and why.
type Status struct {
	Version   string
	Started   time.Time
	Backend   string // engine in use
	Reason    string // why it was chosen
	Hardware  string // what the backend runs on
	Model     string
	Precision string
	Cameras   []CameraStatus
}

// CameraStatus is one camera's part of Status.
type CameraStatus struct {
	Name  string
	State string // opening, running, stalled, stopped, failed
	Error string // why, when it does not run
}

// AppendJSON appends the payload to buf and returns it.
func (s *Status) AppendJSON(buf []byte, device string, now time.Time) []byte {
	buf = append(buf, schemaVersion+`"device":`...)
	buf = appendString(buf, device)
	buf = append(buf, `,"time":`...)
	buf = appendTime(buf, now)
	buf = append(buf, `,"version":`...)
	buf = appendString(buf, s.Version)
	buf = append(buf, `,"uptime_s":`...)
	buf = appendSeconds(buf, s.Started, now)
	for _, field := range [...]struct{ key, value string }{
		{`,"backend":`, s.Backend},
		{`,"reason":`, s.Reason},
		{`,"hardware":`, s.Hardware},
		{`,"model":`, s.Model},
		{`,"precision":`, s.Precision},
	} {
		buf = append(buf, field.key...)
		buf = appendString(buf, field.value)
	}
	buf = append(buf, `,"cameras":{`...)
	for i, camera := range s.Cameras {
		if i > 0 {
			buf = append(buf, ',')
		}
		buf = appendString(buf, camera.Name)
		buf = append(buf, `:{"state":`...)
		buf = appendString(buf, camera.State)
		if camera.Error != "" {
			buf = append(buf, `,"error":`...)
			buf = appendString(buf, camera.Error)
		}
		buf = append(buf, '}')
	}
	return append(buf, '}', '}')
}

// appendSeconds writes the whole seconds from start to now; an unset start counts as now.
func appendSeconds(buf []byte, start, now time.Time) []byte {
	if start.IsZero() {
		return append(buf, '0')
	}
	return appendDecimal(buf, float64(now.Sub(start)/time.Second))
}

package mqtt

// RemoteSettings are the values of a camera's controls that were set by commands; the others are nil.
type RemoteSettings struct {
	Detect    *bool     `json:"detect,omitempty"`
	Threshold *float64  `json:"threshold,omitempty"`
	Interval  *int      `json:"interval,omitempty"`
	Labels    *[]string `json:"labels,omitempty"` // none: all
}

// Set records an executed command.
func (k *RemoteSettings) Set(c command) {
	switch c.Control {
	case controlDetect:
		k.Detect = &c.On
	case controlThreshold:
		k.Threshold = &c.Threshold
	case controlInterval:
		k.Interval = &c.Interval
	case controlLabels:
		labels := append([]string{}, c.Labels...)
		k.Labels = &labels
	}
}

// Clear removes the value of a control.
func (k *RemoteSettings) Clear(control string) {
	switch control {
	case controlDetect:
		k.Detect = nil
	case controlThreshold:
		k.Threshold = nil
	case controlInterval:
		k.Interval = nil
	case controlLabels:
		k.Labels = nil
	}
}

// InRange reports whether all values are valid for commands.
func (k *RemoteSettings) InRange() bool {
	return (k.Threshold == nil || *k.Threshold >= 0 && *k.Threshold <= 1) &&
		(k.Interval == nil || *k.Interval >= 1 && *k.Interval <= maxCommandInterval) && (k.Labels == nil || len(*k.Labels) <= maxCommandLabels)
}

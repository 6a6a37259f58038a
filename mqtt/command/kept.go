package command

// Kept are the values of a camera's controls that commands have set; what none has set is nil.
type Kept struct {
	Detect    *bool     `json:"detect,omitempty"`
	Threshold *float64  `json:"threshold,omitempty"`
	Interval  *int      `json:"interval,omitempty"`
	Labels    *[]string `json:"labels,omitempty"` // none: all
}

// Set notes a command that was carried out.
func (k *Kept) Set(c Command) {
	switch c.Control {
	case Detect:
		k.Detect = &c.On
	case Threshold:
		k.Threshold = &c.Threshold
	case Interval:
		k.Interval = &c.Interval
	case Labels:
		labels := append([]string{}, c.Labels...)
		k.Labels = &labels
	}
}

// Forget takes back what was set of a control.
func (k *Kept) Forget(control string) {
	switch control {
	case Detect:
		k.Detect = nil
	case Threshold:
		k.Threshold = nil
	case Interval:
		k.Interval = nil
	case Labels:
		k.Labels = nil
	}
}

// InRange reports whether commands could have set the values.
func (k *Kept) InRange() bool {
	return (k.Threshold == nil || *k.Threshold >= 0 && *k.Threshold <= 1) &&
		(k.Interval == nil || *k.Interval >= 1 && *k.Interval <= MaxInterval) && (k.Labels == nil || len(*k.Labels) <= MaxLabels)
}

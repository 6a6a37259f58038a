package cuda

import "sync/atomic"

// Shared is a Device with several owners, of which the last one closes it. Its methods are safe for concurrent use.
type Shared struct {
	*Device
	owners atomic.Int32
}

// Share makes the caller the first owner of a device.
func Share(device *Device) *Shared {
	s := &Shared{Device: device}
	s.owners.Store(1)
	return s
}

// Retain adds an owner.
func (s *Shared) Retain() { s.owners.Add(1) }

// Release removes an owner. It replaces Close.
func (s *Shared) Release() {
	if s.owners.Add(-1) == 0 {
		_ = s.Device.Close() // cannot be handled
	}
}

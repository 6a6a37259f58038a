package engine

import (
	"crypto/tls"
	"time"
)

// Remote is how an engine reaches the servers that run the model for it. Local backends ignore it.
type Remote struct {
	// Timeout is how long a request may take with everything that is tried for it; the backend's default when 0.
	Timeout time.Duration
	// TLS gives the settings of a new connection, so that a renewed certificate needs no restart; nil for the system's authorities.
	TLS func() (*tls.Config, error)
	// Authorization gives the value of the header of that name; nil for none. It is asked again every few seconds.
	Authorization func() (string, error)
	// Encoding is what an image goes over the wire as: fp32, fp16, uint8 or jpeg; the backend's own choice when empty or auto.
	Encoding string
	// SharedMemory is which memory images go through to a server on this machine instead of being sent, where the server takes part: on,
	// also when empty, for the system's; cuda for that of a GPU, Options.Device, or else the system's; off for none.
	SharedMemory string
}

package engine

import (
	"crypto/tls"
	"time"
)

// Remote configures the connection to inference servers. Local backends ignore it.
type Remote struct {
	// Timeout is the longest duration of a request including its retries; 0 means the backend's default.
	Timeout time.Duration
	// TLS gives the settings of a new connection, so that a renewed certificate needs no restart; nil for the system's authorities.
	TLS func() (*tls.Config, error)
	// Authorization gives the value of the header of that name; nil for none. It is asked again every few seconds.
	Authorization func() (string, error)
	// Encoding is the encoding of images on the wire: fp32, fp16, uint8 or jpeg; empty or auto means the backend's choice.
	Encoding string
	// SharedMemory is which memory images go through to a server on this machine instead of being sent, where the server takes part: on,
	// also when empty, for the system's; cuda for that of a GPU, Options.Device, or else the system's; off for none.
	SharedMemory string
}

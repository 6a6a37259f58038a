package engine

import (
	"crypto/tls"
	"time"
)

// Remote configures the connection to inference servers. Local backends ignore it.
type Remote struct {
	// Timeout limits a request including its retries; 0 means the backend's default.
	Timeout time.Duration
	// TLS returns the settings of a new connection, so that a renewed certificate needs no restart; nil uses the system's authorities.
	TLS func() (*tls.Config, error)
	// Authorization returns the value of the Authorization header, or "" for none. It is called again every few seconds.
	Authorization func() (string, error)
	// Encoding is the encoding of images on the wire: fp32, fp16, uint8 or jpeg; empty or auto means the backend's choice.
	Encoding string
	// SharedMemory selects the shared memory that passes images to a server on this machine, if the server supports it: on (the default)
	// for system memory; cuda for the memory of GPU Options.Device, falling back to system memory; off for none.
	SharedMemory string
	// MaxAnswers bounds the bytes of the answers that are held at a time; 0 means no limit beside that of each answer.
	MaxAnswers int64
}

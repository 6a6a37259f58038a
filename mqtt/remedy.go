package mqtt

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"

	"github.com/eclipse/paho.mqtt.golang/packets"

	"github.com/edge-infer/edge-infer/mqtt/transport"
)

// loginRefused reports whether the broker rejected the login. Retrying soon is useless and looks like an attack.
func loginRefused(err error) bool {
	for _, refusal := range [...]error{
		packets.ErrorRefusedBadProtocolVersion, packets.ErrorRefusedIDRejected,
		packets.ErrorRefusedBadUsernameOrPassword, packets.ErrorRefusedNotAuthorised,
	} {
		if errors.Is(err, refusal) {
			return true
		}
	}
	return false
}

// remedyFor returns a hint how to fix a connection error, or "". established is set if the broker had accepted the connection.
func remedyFor(err error, established bool) string {
	var (
		packet    *packetError
		invalid   x509.CertificateInvalidError
		unknown   x509.UnknownAuthorityError
		name      x509.HostnameError
		record    tls.RecordHeaderError
		remote    *net.OpError
		dns       *net.DNSError
		timeout   net.Error
		fileError *fs.PathError
	)
	switch {
	case errors.As(err, &packet):
		return "a packet on which this happens again is set aside: raise the broker's limit (mosquitto: max_packet_size), or set mqtt.max_packet"
	case established && transport.Closed(err):
		return "it was stopped, or another client has the same client id"
	case errors.Is(err, packets.ErrorRefusedBadUsernameOrPassword), errors.Is(err, packets.ErrorRefusedNotAuthorised):
		return "check user and password, and what the broker allows this client"
	case errors.Is(err, packets.ErrorRefusedIDRejected):
		return "the broker does not accept the client id, set another one"
	case errors.Is(err, packets.ErrorRefusedServerUnavailable):
		return "the broker runs but takes no clients now"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "the broker's certificate is out of date, or this machine's clock is wrong"
	case errors.As(err, &unknown):
		return "the broker's certificate is signed by an authority this machine does not know, name its CA file"
	case errors.As(err, &name):
		return "the broker's certificate is for another name, set the TLS server name"
	case errors.As(err, &record):
		return "the broker does not speak TLS on this port, use tcp:// or its TLS port"
	case errors.As(err, &remote) && remote.Op == "remote error": // how crypto/tls reports the other side's alert
		return "the broker refused the TLS session, it may require a client certificate or refuse this one"
	case errors.As(err, &fileError), errors.Is(err, os.ErrNotExist):
		return "check the file and its permissions"
	case errors.As(err, &dns):
		return "the host name does not resolve, check its spelling and the network"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nothing listens there, check that the broker runs and the port"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "no route to the broker, check the network"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "the broker does not answer, check address and firewall"
	case transport.Closed(err):
		return "the broker closed the connection, it may want TLS, a client certificate or another client id"
	}
	return ""
}

// packetError is the loss of a connection that a large packet may have caused.
type packetError struct {
	Size int // bytes
	Err  error
}

func (e *packetError) Error() string {
	return fmt.Sprintf("broker closed the connection with a packet of %d bytes on its way: %v", e.Size, e.Err)
}

// Unwrap returns the error of the connection.
func (e *packetError) Unwrap() error { return e.Err }

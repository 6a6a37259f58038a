package onvif

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// WS-Discovery over UDP: where probes go, how often and how long answers are awaited. Devices answer within half a second or so; datagrams
// get lost.
var discoveryGroup = netip.MustParseAddrPort("239.255.255.250:3702")

const (
	probeRepeats = 3
	probePause   = 500 * time.Millisecond
	probeTime    = 4 * time.Second
)

// maxCameras bounds how many cameras are asked: anybody on the network can answer a probe.
const maxCameras = 256

// probeText is a WS-Discovery probe for cameras; %s is a UUID.
const probeText = `<?xml version="1.0" encoding="utf-8"?>
<s:Envelope xmlns:s="http://www.w3.org/2003/05/soap-envelope" xmlns:a="http://schemas.xmlsoap.org/ws/2004/08/addressing">
<s:Header><a:MessageID>urn:uuid:%s</a:MessageID>
<a:To s:mustUnderstand="true">urn:schemas-xmlsoap-org:ws:2005:04:discovery</a:To>
<a:Action s:mustUnderstand="true">http://schemas.xmlsoap.org/ws/2005/04/discovery/Probe</a:Action></s:Header>
<s:Body><d:Probe xmlns:d="http://schemas.xmlsoap.org/ws/2005/04/discovery" xmlns:n="http://www.onvif.org/ver10/network/wsdl">
<d:Types>n:NetworkVideoTransmitter</d:Types></d:Probe></s:Body></s:Envelope>`

// localInterface is a network interface with one of its IPv4 addresses.
type localInterface struct {
	name    string
	index   int
	address netip.Addr
}

// localInterfaces returns the interfaces that carry multicast, without loopback.
func localInterfaces() ([]localInterface, error) {
	all, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	var found []localInterface
	for _, i := range all {
		const needed = net.FlagUp | net.FlagMulticast
		if i.Flags&needed != needed || i.Flags&net.FlagLoopback != 0 {
			continue
		}
		addresses, err := i.Addrs()
		if err != nil {
			continue // the interface is gone
		}
		for _, address := range addresses {
			prefix, err := netip.ParsePrefix(address.String())
			if err == nil && prefix.Addr().Is4() {
				found = append(found, localInterface{i.Name, i.Index, prefix.Addr()})
			}
		}
	}
	return found, nil
}

// target is a camera to be asked.
type target struct {
	service *url.URL // its device service
	title   string   // as it called itself in its answer to a probe; may be empty
}

// search probes all interfaces at once until the context ends or patience is over, and returns the cameras sorted by address. Its error
// says why nothing could be sent on any interface.
func search(ctx context.Context, interfaces []localInterface, group netip.AddrPort, patience time.Duration) ([]target, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var mu sync.Mutex
	var all sync.WaitGroup
	var failures []error
	found := map[string]target{}
	add := func(from netip.Addr, datagram []byte) {
		mu.Lock()
		defer mu.Unlock()
		for _, t := range matches(from, datagram) {
			if len(found) < maxCameras {
				found[t.service.Host] = t
			}
		}
	}
	for _, i := range interfaces {
		all.Go(func() {
			err := probe(ctx, i, group, add)
			if err != nil {
				mu.Lock()
				defer mu.Unlock()
				failures = append(failures, fmt.Errorf("probe on %s: %w", i.name, err))
			}
		})
	}
	all.Wait()
	if len(failures) == len(interfaces) {
		return nil, errors.Join(failures...)
	}
	targets := make([]target, 0, len(found))
	for _, t := range found {
		targets = append(targets, t)
	}
	slices.SortFunc(targets, func(a, b target) int { return strings.Compare(sortKey(a), sortKey(b)) })
	return targets, nil
}

// sortKey orders cameras by IP address.
func sortKey(t target) string {
	address, err := netip.ParseAddr(t.service.Hostname())
	if err != nil {
		return t.service.Host
	}
	bytes := address.As16()
	return string(bytes[:]) + t.service.Port()
}

// probe sends probes on one interface and passes the answers on until the context ends.
func probe(ctx context.Context, on localInterface, group netip.AddrPort, add func(from netip.Addr, datagram []byte)) error {
	config := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		var failed error
		err := raw.Control(func(fd uintptr) {
			failed = unix.SetsockoptIPMreqn(int(fd), unix.IPPROTO_IP, unix.IP_MULTICAST_IF, &unix.IPMreqn{Ifindex: int32(on.index)})
		})
		return errors.Join(err, failed)
	}}
	listening, err := config.ListenPacket(ctx, "udp4", netip.AddrPortFrom(on.address, 0).String())
	if err != nil {
		return err
	}
	connection := listening.(*net.UDPConn)
	defer connection.Close()
	defer context.AfterFunc(ctx, func() { _ = connection.Close() })()
	message := fmt.Appendf(nil, probeText, newUUID())
	_, err = connection.WriteToUDPAddrPort(message, group)
	if err != nil {
		return err
	}
	repeat := time.NewTicker(probePause)
	defer repeat.Stop()
	go func() {
		for range probeRepeats - 1 {
			select {
			case <-ctx.Done():
				return
			case <-repeat.C:
				_, _ = connection.WriteToUDPAddrPort(message, group) // the first one was sent; this one is for lost ones
			}
		}
	}()
	datagram := make([]byte, 64<<10)
	for {
		n, from, err := connection.ReadFromUDPAddrPort(datagram)
		if err != nil { // closed
			return nil
		}
		add(from.Addr().Unmap(), datagram[:n])
	}
}

func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// matches parses an answer to a probe. The address that a camera gives for itself may be another's or out of date; only those that lead to
// the sender count, otherwise credentials would go wherever an answer wants them.
func matches(from netip.Addr, datagram []byte) (found []target) {
	var answer struct {
		Matches []struct {
			Scopes    string `xml:"Scopes"`
			Addresses string `xml:"XAddrs"`
		} `xml:"Body>ProbeMatches>ProbeMatch"`
	}
	if decode(datagram, &answer) != nil {
		return nil
	}
	for _, match := range answer.Matches {
		var chosen *url.URL
		for _, text := range strings.Fields(match.Addresses) {
			service, err := deviceService(text)
			if err != nil {
				continue
			}
			service.Host = hostWithPort(from.String(), service.Port())
			if chosen == nil || chosen.Scheme == "https" { // http, because cameras' certificates are their own
				chosen = service
			}
		}
		if chosen != nil {
			found = append(found, target{service: chosen, title: scopeTitle(match.Scopes)})
		}
	}
	return found
}

// scopeTitle returns the name in a device's scopes, such as onvif://www.onvif.org/name/Gate%20camera.
func scopeTitle(scopes string) string {
	for _, scope := range strings.Fields(scopes) {
		_, name, found := strings.Cut(scope, "onvif.org/name/")
		if !found {
			continue
		}
		plain, err := url.PathUnescape(name)
		if err == nil {
			return clean(plain)
		}
	}
	return ""
}

// deviceService parses a camera's address: host, host and port, or the URL of its device service.
func deviceService(text string) (*url.URL, error) {
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	service, err := url.Parse(text)
	if err != nil || service.Hostname() == "" || service.Scheme != "http" && service.Scheme != "https" {
		return nil, errors.New("not a host name, an IP address or an http:// address")
	}
	if service.Path == "" || service.Path == "/" {
		service.Path = "/onvif/device_service"
	}
	service.User = nil
	service.Fragment = ""
	return service, nil
}

// hostWithPort joins a host name or address and a port, which may be empty.
func hostWithPort(host, port string) string {
	if port != "" {
		return net.JoinHostPort(host, port)
	}
	if strings.Contains(host, ":") {
		return "[" + host + "]"
	}
	return host
}

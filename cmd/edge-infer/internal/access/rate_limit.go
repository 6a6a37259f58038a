package access

import (
	"net/netip"
	"sync"
	"time"
)

// maxClients bounds the memory used for unknown clients.
const maxClients = 4096

// RateLimit is a token bucket per client prefix. It is safe for concurrent use.
type RateLimit struct {
	PerSecond, Burst float64

	mutex sync.Mutex
	used  map[netip.Prefix]usage
}

// usage is the used part of a client's burst at a time.
type usage struct {
	amount float64
	at     time.Time
}

// after returns the used part at a later time.
func (s usage) after(now time.Time, perSecond float64) float64 {
	return max(0, s.amount-perSecond*now.Sub(s.at).Seconds())
}

// Left reports whether the client has a token left.
func (r *RateLimit) Left(client string, now time.Time) bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.used[ClientPrefix(client)].after(now, r.PerSecond)+1 <= r.Burst
}

// Spend takes a token, and reports false if there is none.
func (r *RateLimit) Spend(client string, now time.Time) bool {
	prefix := ClientPrefix(client)
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.used == nil {
		r.used = map[netip.Prefix]usage{}
	}
	amount := r.used[prefix].after(now, r.PerSecond) + 1
	if amount > r.Burst {
		return false
	}
	if len(r.used) >= maxClients {
		r.forget(now)
	}
	r.used[prefix] = usage{amount, now}
	return true
}

// forget removes clients with a full burst, or all clients if there are none.
func (r *RateLimit) forget(now time.Time) {
	for prefix, s := range r.used {
		if s.after(now, r.PerSecond) == 0 {
			delete(r.used, prefix)
		}
	}
	if len(r.used) >= maxClients {
		clear(r.used)
	}
}

// ClientPrefix returns the address, or the /64 of an IPv6 address, that identifies a client; the port is optional.
func ClientPrefix(client string) netip.Prefix {
	address, err := netip.ParseAddr(client)
	if err != nil {
		both, err := netip.ParseAddrPort(client)
		if err != nil {
			return netip.Prefix{}
		}
		address = both.Addr()
	}
	bits := address.BitLen()
	if address.Is6() && !address.Is4In6() {
		bits = 64
	}
	return netip.PrefixFrom(address.WithZone(""), bits).Masked()
}

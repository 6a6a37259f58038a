package access

import (
	"net/netip"
	"sync"
	"time"
)

// maxClients bounds the memory that strangers can make a limit use.
const maxClients = 4096

// RateLimit lets each client do something so many times a second, and a burst of it at once.
type RateLimit struct {
	PerSecond, Burst float64

	mutex sync.Mutex
	used  map[netip.Prefix]usage
}

// usage is what a client has used of its burst at a time.
type usage struct {
	amount float64
	at     time.Time
}

// after is what is still spent at a later time.
func (s usage) after(now time.Time, perSecond float64) float64 {
	return max(0, s.amount-perSecond*now.Sub(s.at).Seconds())
}

// Left reports whether the client may do it once more.
func (r *RateLimit) Left(client string, now time.Time) bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.used[ClientPrefix(client)].after(now, r.PerSecond)+1 <= r.Burst
}

// Spend counts one, and reports false when there was none left.
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

// forget drops the clients that have been quiet; all of them when none has.
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

// ClientPrefix is the part of a client's address, with or without a port, that is counted: with IPv6 one subscriber has a whole /64.
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

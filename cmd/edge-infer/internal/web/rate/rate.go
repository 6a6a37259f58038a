// Package rate bounds what clients may do in a time.
package rate

import (
	"net/netip"
	"sync"
	"time"
)

// rememberedClients bounds the memory that strangers can make a limit use.
const rememberedClients = 4096

// Limit lets each client do something so many times a second, and a burst of it at once.
type Limit struct {
	PerSecond, Burst float64

	mutex sync.Mutex
	spent map[netip.Prefix]spending
}

// spending is what a client has used of its burst at a time.
type spending struct {
	amount float64
	at     time.Time
}

// after is what is still spent at a later time.
func (s spending) after(now time.Time, perSecond float64) float64 {
	return max(0, s.amount-perSecond*now.Sub(s.at).Seconds())
}

// Left reports whether the client may do it once more.
func (r *Limit) Left(client string, now time.Time) bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.spent[Prefix(client)].after(now, r.PerSecond)+1 <= r.Burst
}

// Spend counts one, and reports false when there was none left.
func (r *Limit) Spend(client string, now time.Time) bool {
	prefix := Prefix(client)
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.spent == nil {
		r.spent = map[netip.Prefix]spending{}
	}
	amount := r.spent[prefix].after(now, r.PerSecond) + 1
	if amount > r.Burst {
		return false
	}
	if len(r.spent) >= rememberedClients {
		r.forget(now)
	}
	r.spent[prefix] = spending{amount, now}
	return true
}

// forget drops the clients that have been quiet; all of them when none has.
func (r *Limit) forget(now time.Time) {
	for prefix, s := range r.spent {
		if s.after(now, r.PerSecond) == 0 {
			delete(r.spent, prefix)
		}
	}
	if len(r.spent) >= rememberedClients {
		clear(r.spent)
	}
}

// Prefix is the part of a client's address, with or without a port, that is counted: with IPv6 one subscriber has a whole /64.
func Prefix(client string) netip.Prefix {
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

// Package rate bounds what addresses may do in a time.
package rate

import (
	"net/netip"
	"sync"
	"time"
)

// rememberedAddresses bounds the memory that strangers can make a limit use.
const rememberedAddresses = 4096

// Limit lets each address do something so many times a second, and a burst of it at once.
type Limit struct {
	PerSecond, Burst float64

	mutex sync.Mutex
	spent map[netip.Addr]spending
}

// spending is what an address has used of its burst at a time.
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
	return r.spent[Household(client)].after(now, r.PerSecond)+1 <= r.Burst
}

// Spend counts one, and reports false when there was none left.
func (r *Limit) Spend(client string, now time.Time) bool {
	address := Household(client)
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.spent == nil {
		r.spent = map[netip.Addr]spending{}
	}
	amount := r.spent[address].after(now, r.PerSecond) + 1
	if amount > r.Burst {
		return false
	}
	if len(r.spent) >= rememberedAddresses {
		r.forget(now)
	}
	r.spent[address] = spending{amount, now}
	return true
}

// forget drops the addresses that have been quiet; all of them when none has.
func (r *Limit) forget(now time.Time) {
	for address, s := range r.spent {
		if s.after(now, r.PerSecond) == 0 {
			delete(r.spent, address)
		}
	}
	if len(r.spent) >= rememberedAddresses {
		clear(r.spent)
	}
}

// Household is the address that is counted: with IPv6 one subscriber has a whole /64.
func Household(client string) netip.Addr {
	address, err := netip.ParseAddr(client)
	if err != nil {
		return netip.Addr{}
	}
	if address.Is6() && !address.Is4In6() {
		return netip.PrefixFrom(address.WithZone(""), 64).Masked().Addr()
	}
	return address
}

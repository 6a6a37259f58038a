package web

import (
	"net/netip"
	"sync"
	"time"
)

// rememberedAddresses bounds the memory that strangers can make a rate use.
const rememberedAddresses = 4096

// rate lets each address do something so many times a second, and a burst of it at once.
type rate struct {
	perSecond, burst float64

	mutex sync.Mutex
	spent map[netip.Addr]spending
}

// spending is what an address has used of its burst at a time.
type spending struct {
	amount float64
	at     time.Time
}

// allow takes one, and reports false when there is none left.
func (r *rate) allow(client string, now time.Time) bool {
	address, err := netip.ParseAddr(client)
	if err != nil {
		return false
	}
	if address.Is6() && !address.Is4In6() {
		// One household has a whole /64.
		address = netip.PrefixFrom(address.WithZone(""), 64).Masked().Addr()
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.spent == nil {
		r.spent = map[netip.Addr]spending{}
	}
	if _, known := r.spent[address]; !known && len(r.spent) >= rememberedAddresses {
		r.forget(now)
	}
	left := r.spent[address].after(now, r.perSecond)
	if left+1 > r.burst {
		return false
	}
	r.spent[address] = spending{left + 1, now}
	return true
}

// after is what is still spent at a later time.
func (s spending) after(now time.Time, perSecond float64) float64 {
	return max(0, s.amount-perSecond*now.Sub(s.at).Seconds())
}

// forget drops the addresses that have been quiet; all of them when none has.
func (r *rate) forget(now time.Time) {
	for address, s := range r.spent {
		if s.after(now, r.perSecond) == 0 {
			delete(r.spent, address)
		}
	}
	if len(r.spent) >= rememberedAddresses {
		clear(r.spent)
	}
}

package triton

import "slices"

// explorationInterval is the number of requests of which one goes to the least used of the least loaded servers, so that the latency and
// health of every server stay current.
const explorationInterval = 8

// choose returns the healthy untried server with the fewest requests in flight, or nil. Of several, it returns the fastest, except for one
// request in explorationInterval.
func (e *Engine) choose(tried []*endpoint) *endpoint {
	asked := uint64(0)
	for _, p := range e.endpoints {
		asked += p.requests.Load()
	}
	before := func(p, other *endpoint) bool {
		load, others := p.inFlight.Load(), other.inFlight.Load()
		switch {
		case load != others:
			return load < others
		case asked%explorationInterval == 0:
			return p.requests.Load() < other.requests.Load()
		}
		return p.latency.Load() < other.latency.Load()
	}
	var best *endpoint
	for _, p := range e.endpoints {
		if healthy, _ := p.state(); !healthy || slices.Contains(tried, p) {
			continue
		}
		if best == nil || before(p, best) {
			best = p
		}
	}
	return best
}

// reserve is choose, and counts a request in flight that the caller ends with inFlight. Two slots that choose at once do not both take the
// least loaded server.
func (e *Engine) reserve(tried []*endpoint) *endpoint {
	e.choosing.Lock()
	defer e.choosing.Unlock()
	p := e.choose(tried)
	if p != nil {
		p.inFlight.Add(1)
	}
	return p
}

package broker

import (
	"net"
	"sync"
	"sync/atomic"

	mochi "github.com/mochi-mqtt/server/v2"
)

// sessions limits connected clients and stored sessions together. A client that has a session always gets in. A new client replaces the
// session that has been disconnected longest, of the address with the most disconnected sessions: a client that leaves many sessions behind
// displaces its own, not those of others.
type sessions struct {
	server  *mochi.Server
	limit   int
	mu      sync.Mutex // held while evicting
	evicted atomic.Uint64
}

// admits reports whether a client may log in, which has not been authenticated yet.
func (s *sessions) admits(id string) bool {
	if _, known := s.server.Clients.Get(id); known || s.server.Clients.Len() < s.limit {
		return true
	}
	for _, client := range s.server.Clients.GetAll() {
		if client.StopTime() != 0 {
			return true
		}
	}
	return false
}

// makeRoom evicts sessions until an authenticated client fits.
func (s *sessions) makeRoom(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.server.Clients.Get(id); known {
		return
	}
	for s.server.Clients.Len() >= s.limit {
		oldest := s.oldest()
		if oldest == nil {
			return
		}
		s.evict(oldest)
	}
}

// oldest returns the session to evict; nil if all clients are connected.
func (s *sessions) oldest() (oldest *mochi.Client) {
	clients := s.server.Clients.GetAll()
	perHost := map[string]int{}
	for _, client := range clients {
		if client.StopTime() != 0 {
			perHost[hostOf(client.Net.Remote)]++
		}
	}
	for _, client := range clients {
		stopped := client.StopTime()
		if stopped == 0 {
			continue
		}
		if oldest == nil {
			oldest = client
			continue
		}
		count, most := perHost[hostOf(client.Net.Remote)], perHost[hostOf(oldest.Net.Remote)]
		if count > most || count == most && stopped < oldest.StopTime() {
			oldest = client
		}
	}
	return oldest
}

// evict removes a disconnected client's session.
func (s *sessions) evict(client *mochi.Client) {
	if current, known := s.server.Clients.Get(client.ID); !known || current != client {
		return // it has connected again
	}
	s.remove(client)
	s.evicted.Add(1)
}

// end disconnects a client, if it is connected, and removes it.
func (s *sessions) end(client *mochi.Client, reason error) {
	client.Stop(reason)
	s.remove(client)
}

// remove removes a client with its subscriptions and unacknowledged messages.
func (s *sessions) remove(client *mochi.Client) {
	client.ClearInflights()
	s.server.UnsubscribeClient(client)
	s.server.Clients.Delete(client.ID)
}

// hostOf returns an address without the port.
func hostOf(remote string) string {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		return remote
	}
	return host
}

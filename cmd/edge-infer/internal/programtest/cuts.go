package programtest

import (
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Cuts is a way to a server on which connections are cut.
type Cuts struct {
	Address string // HOST:PORT to connect to
	// What has gone over it so far; Bytes in both directions.
	Connections, Cut, Bytes atomic.Int64
}

// NewCuts opens a way to the server at HOST:PORT. A share of all connections is cut, each at a random time within a span.
func NewCuts(t testing.TB, to string, share float64, within time.Duration) *Cuts {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	c := &Cuts{Address: listener.Addr().String()}
	var connections sync.WaitGroup
	ended := make(chan struct{})
	connections.Go(func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			c.Connections.Add(1)
			connections.Go(func() { c.carry(from, to, share, within, ended) })
		}
	})
	t.Cleanup(func() {
		close(ended)
		_ = listener.Close()
		connections.Wait()
	})
	return c
}

// carry connects one client with the server until either ends, the connection is cut, or all end.
func (c *Cuts) carry(from net.Conn, to string, share float64, within time.Duration, ended <-chan struct{}) {
	defer from.Close()
	server, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer server.Close()
	over := make(chan struct{}, 2)
	for _, pair := range [][2]net.Conn{{from, server}, {server, from}} {
		go func() {
			n, _ := io.Copy(pair[0], pair[1]) // either side may end at any time
			c.Bytes.Add(n)
			over <- struct{}{}
		}()
	}
	var cut <-chan time.Time
	if rand.Float64() < share {
		cut = time.After(rand.N(within))
	}
	waits := 2
	select {
	case <-over:
		waits--
	case <-cut:
		c.Cut.Add(1)
	case <-ended:
	}
	_, _ = from.Close(), server.Close() // which ends both copies
	for range waits {
		<-over
	}
}

package triton

import (
	"sync"

	"github.com/edge-infer/edge-infer/engine"
)

// budget keeps retries from doubling the load of servers that are in trouble: they may be a tenth of the requests, with a few to begin
// with.
type budget struct {
	mu   sync.Mutex
	left float64
}

const (
	mostRetries  = 10
	retriesShare = 0.1
)

func newBudget() budget { return budget{left: mostRetries} }

// earn counts a request.
func (b *budget) earn() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left = min(b.left+retriesShare, mostRetries)
}

// take asks for a retry.
func (b *budget) take() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.left < 1 {
		return false
	}
	b.left--
	return true
}

// authorize reads the token for the first time. It is not sent where others could read it on its way.
func (e *Engine) authorize(list []address) error {
	if e.remote.Authorization == nil {
		return nil
	}
	for _, a := range list {
		if !a.tls && !a.loopback() {
			return &engine.Error{
				Kind: engine.ErrUnsupported, Message: "the token for " + a.host + " could be read on its way",
				Hint: "use grpcs:// or https://",
			}
		}
	}
	token, err := e.remote.Authorization()
	if err != nil {
		return &engine.Error{Kind: engine.ErrUnsupported, Message: "token for the server", Err: err}
	}
	e.token.Store(&token)
	return nil
}

// renewToken reads the token again; one that cannot be read leaves the former one.
func (e *Engine) renewToken() {
	if e.remote.Authorization == nil {
		return
	}
	if token, err := e.remote.Authorization(); err == nil {
		e.token.Store(&token)
	}
}

func (e *Engine) authorization() string {
	if token := e.token.Load(); token != nil {
		return *token
	}
	return ""
}

package triton

import (
	"sync"

	"github.com/edge-infer/edge-infer/engine"
)

// budget limits retries to a tenth of the requests, plus an initial allowance, so that they do not double the load of overloaded servers.
type budget struct {
	mu   sync.Mutex
	left float64
}

const (
	maxRetries = 10
	retryRatio = 0.1
)

func newBudget() budget { return budget{left: maxRetries} }

// earn counts a request and adds its share of a retry.
func (b *budget) earn() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left = min(b.left+retryRatio, maxRetries)
}

// take consumes one retry and reports whether one was left.
func (b *budget) take() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.left < 1 {
		return false
	}
	b.left--
	return true
}

// authorize reads the token for the first time. It returns an error for a remote server without TLS.
func (e *Engine) authorize(list []address) error {
	if e.remote.Authorization == nil {
		return nil
	}
	for _, a := range list {
		if !a.tls && !a.loopback() {
			return &engine.Error{
				Kind: engine.ErrUnsupported, Message: "the token for " + a.host + " would be sent unencrypted",
				Hint: "use grpcs:// or https://",
			}
		}
	}
	token, err := e.remote.Authorization()
	if err != nil {
		return &engine.Error{Kind: engine.ErrUnsupported, Message: "cannot read the server's token", Err: err}
	}
	e.token.Store(&token)
	return nil
}

// renewToken reads the token again and keeps the previous one if that fails.
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

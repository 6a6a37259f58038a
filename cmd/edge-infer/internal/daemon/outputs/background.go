package outputs

import (
	"context"
	"slices"
	"sync"
)

// background runs the work of outputs until ctx ends, in goroutines of a group. The zero value remembers what is started, until Run.
type background struct {
	mu     sync.Mutex
	ctx    context.Context // nil before Run
	group  *sync.WaitGroup
	failed context.CancelCauseFunc
	early  []*task
}

// task is the work of one output.
type task struct {
	run    func(context.Context) error
	ctx    context.Context // nil before it runs
	cancel context.CancelFunc
	ended  chan struct{}
}

// Run starts what waits, and each later task at once. The first failure is passed to failed.
func (b *background) Run(ctx context.Context, group *sync.WaitGroup, failed context.CancelCauseFunc) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ctx, b.group, b.failed = ctx, group, failed
	for _, t := range b.early {
		b.begin(t)
	}
	b.early = nil
}

// Start runs a function until the returned one is called, which waits for its end.
func (b *background) Start(run func(context.Context) error) (stop func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := &task{run: run}
	if b.ctx == nil {
		b.early = append(b.early, t)
	} else {
		b.begin(t)
	}
	return func() { b.stop(t) }
}

// begin begins a task. The lock is held.
func (b *background) begin(t *task) {
	t.ctx, t.cancel = context.WithCancel(b.ctx)
	t.ended = make(chan struct{})
	b.group.Go(func() {
		defer close(t.ended)
		defer t.cancel()
		if err := t.run(t.ctx); err != nil {
			b.failed(err)
		}
	})
}

func (b *background) stop(t *task) {
	b.mu.Lock()
	begun := t.ctx != nil
	b.early = slices.DeleteFunc(b.early, func(other *task) bool { return other == t })
	b.mu.Unlock()
	if begun {
		t.cancel()
		<-t.ended
	}
}

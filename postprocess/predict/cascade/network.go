package cascade

import "time"

// network is an open network of a stage with the memory of its requests. One goroutine runs the requests: if one hangs, it is abandoned
// with the network. The lock of the worker guards the fields, except those of the running request.
type network struct {
	stage   *Stage
	pending *request
	spare   *request  // nil while it is running
	running *request  // nil between requests
	begun   time.Time // of running
	batch   int       // maximum of the network
	room    int       // bytes that crops need; the goroutine allocates them, because the engine may hang

	done chan struct{} // closed when the network is closed
	err  error         // of closing, after done
}

// newNetwork returns the network of a stage whose predictor is open and bound. It allocates memory in the engine.
func newNetwork(stage *Stage) (*network, error) {
	n := &network{stage: stage, batch: stage.Model().MaxBatch, room: minRoom, done: make(chan struct{})}
	n.pending = &request{cropBatch: cropBatch{stage: stage, fixed: true}}
	n.spare = &request{cropBatch: cropBatch{stage: stage, fixed: true}}
	for _, r := range []*request{n.pending, n.spare} {
		if err := r.grow(n.room); err != nil {
			n.free()
			return nil, err
		}
	}
	return n, nil
}

// hasWork reports whether crops are pending, or room for them.
func (n *network) hasWork() bool { return len(n.pending.subjects) > 0 || n.pending.room() < n.room }

// take returns the pending request, which is running from now on.
func (n *network) take() *request {
	n.running, n.pending, n.spare = n.pending, n.spare, nil
	n.begun = time.Now()
	return n.running
}

// putBack makes the memory of a request that has ended free for the next one.
func (n *network) putBack(r *request) {
	r.clear()
	r.vectors = r.vectors[:0]
	r.subjects = r.subjects[:0]
	n.spare = r
}

// close closes the network. No request is running.
func (n *network) close() {
	n.free()
	n.err = n.stage.Close()
	close(n.done)
}

// free frees the memory of all requests.
func (n *network) free() {
	for _, r := range []*request{n.pending, n.spare, n.running} {
		if r != nil {
			r.free()
		}
	}
}

// freeAll frees the memory of networks, nil for those that are not open, and leaves their predictors open.
func freeAll(all []*network) {
	for _, n := range all {
		if n != nil {
			n.free()
		}
	}
}

package serve

import (
	"errors"
	"slices"
	"time"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/kserve"
)

// work runs requests in batches until the server stops.
func (m *model) work() {
	var left *request // that did not fit into the previous batch
	for {
		first := left
		if left = nil; first == nil {
			select {
			case <-m.stop:
				return
			case first = <-m.queue:
			}
		}
		if m.expired(first) {
			continue
		}
		left = m.gather(first)
		m.run()
	}
}

// expired answers a request whose client has disconnected.
func (m *model) expired(r *request) bool {
	if r.ctx.Err() == nil {
		return false
	}
	r.err = r.ctx.Err()
	m.count(r, time.Since(r.arrived), r.err)
	close(r.done)
	return true
}

// gather fills a batch starting with one request and returns the first one that did not fit.
func (m *model) gather(first *request) (left *request) {
	m.batch = append(m.batch[:0], first)
	if m.config.MaxBatch == 0 {
		return nil
	}
	rows := first.rows
	var timeout <-chan time.Time
	if m.delay > 0 {
		timer := time.NewTimer(m.delay - time.Since(first.arrived))
		defer timer.Stop()
		timeout = timer.C
	}
	for rows < int64(m.config.MaxBatch) {
		var r *request
		if timeout == nil {
			select {
			case r = <-m.queue:
			default:
				return nil
			}
		} else {
			select {
			case r = <-m.queue:
			case <-timeout:
				return nil
			case <-m.stop:
				return nil
			}
		}
		if m.expired(r) {
			continue
		}
		if rows+r.rows > int64(m.config.MaxBatch) || !compatible(first, r) {
			return r
		}
		m.batch = append(m.batch, r)
		rows += r.rows
	}
	return nil
}

// compatible reports whether requests differ only in their number of rows.
func compatible(a, b *request) bool {
	return slices.EqualFunc(a.inputs, b.inputs, func(a, b engine.Tensor) bool { return slices.Equal(a.Shape[1:], b.Shape[1:]) })
}

// run runs the batch and answers its requests.
func (m *model) run() {
	began := time.Now()
	rows := m.join()
	joined := time.Now()
	result, err := m.raw.Tensors(m.inputs...)
	inferred := time.Now()
	if err == nil {
		err = m.divide(result.Outputs, rows)
	}
	ended := time.Now()
	if err != nil {
		code := kserve.Internal
		if errors.Is(err, engine.ErrShape) || errors.Is(err, engine.ErrUnsupported) {
			code = kserve.InvalidArgument
		}
		err = kserve.NewStatus(code, err.Error())
	}
	m.mu.Lock()
	m.stats.ExecutionCount++
	size := m.sizes[int(rows)]
	if size == nil {
		size = &kserve.BatchStatistics{BatchSize: uint64(rows)}
		m.sizes[int(rows)] = size
	}
	add(&size.ComputeInput, joined.Sub(began))
	add(&size.ComputeInfer, inferred.Sub(joined))
	add(&size.ComputeOutput, ended.Sub(inferred))
	for range m.batch {
		add(&m.stats.Infer.ComputeInput, joined.Sub(began))
		add(&m.stats.Infer.ComputeInfer, inferred.Sub(joined))
		add(&m.stats.Infer.ComputeOutput, ended.Sub(inferred))
	}
	m.mu.Unlock()
	for _, r := range m.batch {
		r.err = err
		m.count(r, began.Sub(r.arrived), err)
		close(r.done)
	}
	clear(m.batch)
}

// join concatenates the inputs of the batch; those of a single request are not copied.
func (m *model) join() (rows int64) {
	m.inputs = append(m.inputs[:0], m.batch[0].inputs...)
	for _, r := range m.batch {
		rows += r.rows
	}
	if len(m.batch) == 1 {
		return rows
	}
	m.memory = slices.Grow(m.memory, len(m.inputs))[:len(m.inputs)]
	for i := range m.inputs {
		m.memory[i] = m.memory[i][:0]
		for _, r := range m.batch {
			m.memory[i] = append(m.memory[i], r.inputs[i].Data...)
		}
		m.inputs[i].Shape = append([]int64{rows}, m.inputs[i].Shape[1:]...)
		m.inputs[i].Data = m.memory[i]
	}
	return rows
}

// divide copies the rows of each request from the outputs, because the engine continues while clients are answered.
func (m *model) divide(outputs []engine.Tensor, rows int64) error {
	for _, out := range outputs {
		data := slices.Clone(out.Data)
		from := 0
		for _, r := range m.batch {
			t := kserve.Tensor{Name: out.Name, Datatype: kserve.Datatype(out.Type), Shape: slices.Clone(out.Shape), Data: data}
			if len(m.batch) > 1 {
				if len(out.Shape) == 0 || out.Shape[0] != rows {
					return kserve.Statusf(kserve.Internal, "output %s has shape %v for a batch of %d", out.Name, out.Shape, rows)
				}
				n := len(data) / int(rows) * int(r.rows)
				t.Shape[0], t.Data = r.rows, data[from:from+n:from+n]
				from += n
			}
			r.outputs = append(r.outputs, t)
		}
	}
	return nil
}

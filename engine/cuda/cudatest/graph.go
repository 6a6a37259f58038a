package cudatest

// #include "../ei_cuda.h"
//
// static int replay(ei_cuda_context context, ei_cuda_graph_exec exec, ei_cuda_stream stream) {
//     int code = ei_cuda_use(context);
//     return code ? code : cuGraphLaunch(exec, stream);
// }
//
// static int replace(ei_cuda_context context, ei_cuda_graph_exec exec, ei_cuda_node node, ei_cuda_function function, const unsigned *grid,
//                    const unsigned *block, const void *arguments, size_t size) {
//     ei_cuda_kernel kernel = {function, {grid[0], grid[1], grid[2]}, {block[0], block[1], block[2]}, arguments, size};
//     int code = ei_cuda_use(context);
//     return code ? code : ei_cuda_replace_kernel(exec, node, &kernel);
// }
import "C"

import (
	"unsafe"

	"github.com/edge-infer/edge-infer/engine/cuda"
)

// Graph is captured work that is replayed in one call.
type Graph struct {
	device *cuda.Device
	graph  C.ei_cuda_graph
	exec   C.ei_cuda_graph_exec
}

// Node is one step of a graph, valid until the graph is closed.
type Node unsafe.Pointer

// Capture records what record enqueues on the stream, without running it. It locks record to its thread. After an error the stream works as
// before and the same calls can be made directly.
func (s *Stream) Capture(record func() error) (*Graph, error) {
	g := &Graph{device: s.device}
	err := s.device.Do(func() error {
		if code := C.ei_cuda_begin(s.c()); code != 0 {
			return failure("capture", "begin", int(code))
		}
		recorded := record()
		code := C.ei_cuda_end(s.c(), &g.graph, &g.exec)
		if recorded != nil {
			C.ei_cuda_free_graph(g.graph, g.exec)
			return recorded
		}
		return failure("capture", "graph", int(code))
	})
	if err != nil {
		return nil, err
	}
	return g, nil
}

// Launch enqueues the whole graph on a stream. A graph runs once at a time: a second launch waits for the first.
func (g *Graph) Launch(s *Stream) error {
	return failure("launch", "graph", int(C.replay(context(g.device), g.exec, s.c())))
}

// Replace gives a captured kernel other arguments or another grid, for the launches that follow. The function stays the same.
func (g *Graph) Replace(n Node, k *cuda.Kernel) error {
	code := C.replace(context(g.device), g.exec, C.ei_cuda_node(n), C.ei_cuda_function(k.Function), (*C.uint)(&k.Grid[0]),
		(*C.uint)(&k.Block[0]), unsafe.Pointer(unsafe.SliceData(k.Arguments)), C.size_t(len(k.Arguments)))
	return failure("replace", "kernel of the graph", int(code))
}

// Update records again and replaces the graph's work. The new work must have the same kinds of steps in the same order. After an error the
// graph still runs the previous work.
func (g *Graph) Update(s *Stream, record func() error) error {
	other, err := s.Capture(record)
	if err != nil {
		return err
	}
	return g.device.Do(func() error {
		code := C.ei_cuda_update(g.exec, other.graph)
		C.ei_cuda_free_graph(other.graph, other.exec)
		return failure("update", "graph", int(code))
	})
}

// Close frees the graph. It is idempotent and does nothing on nil. No launch may be in flight.
func (g *Graph) Close() error {
	if g == nil || g.exec == nil {
		return nil
	}
	graph, exec := g.graph, g.exec
	g.graph, g.exec = nil, nil
	return g.device.Do(func() error { return failure("close", "graph", int(C.ei_cuda_free_graph(graph, exec))) })
}

package cudatest

import (
	"unsafe"

	"github.com/edge-infer/edge-infer/engine/cuda"
)

// Kernel is one launch of a function whose only parameter is a struct passed by value.
type Kernel struct {
	Function    cuda.Function
	Grid, Block [3]uint32
	Arguments   []byte // the struct in C's layout; see Bytes
}

// Bytes views a struct that holds no Go pointers as the bytes of Kernel.Arguments.
func Bytes[T any](v *T) []byte { return unsafe.Slice((*byte)(unsafe.Pointer(v)), unsafe.Sizeof(*v)) }

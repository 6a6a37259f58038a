// Package tensorrt runs models on TensorRT 8.5 to 11.x, whichever release the machine has. The library is opened at run time and spoken to
// through slot tables of our own, one translation unit per ABI family, so that one program serves every JetPack from 5.1 on and starts
// without TensorRT too. A model is an ONNX file, for which a plan is built once and kept in a cache, or a plan.
package tensorrt

// #cgo CXXFLAGS: -std=c++17 -Wall -Wextra
// #cgo LDFLAGS: -lcuda -ldl -lpthread
// #include <stdlib.h>
//
// #include "shim.h"
import "C"

// Name is what this backend calls itself in engine.Model.Backend and in errors.
const Name = "tensorrt"

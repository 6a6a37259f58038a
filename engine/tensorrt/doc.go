// Package tensorrt runs models on the installed TensorRT, 8.5 to 11.x. The library is loaded at run time and called through slot tables,
// with one translation unit per ABI family, so that one program works on every JetPack from 5.1 on and starts without TensorRT. A model is
// an ONNX file, for which a plan is built once and cached, or a plan.
package tensorrt

// #cgo CXXFLAGS: -std=c++17 -Wall -Wextra
// #cgo LDFLAGS: -lcuda -ldl -lpthread
// #include <stdlib.h>
//
// #include "shim.h"
import "C"

// Name is the backend's name in engine.Model.Backend and in errors.
const Name = "tensorrt"

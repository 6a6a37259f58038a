// All kernels of the module, compiled as one: by engine/preprocess/kernels to PTX, by tests for the host.
#include "letterbox.cu"
//
#include "antialias.cu"
//
#include "filter.cu"

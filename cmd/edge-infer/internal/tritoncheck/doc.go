// Package tritoncheck holds the tests against the real Triton Inference Server, without a GPU: its release for Python ships the server with
// the Python backend, which stands in for the backends of ONNX Runtime here. `make triton-check` installs it and runs them.
package tritoncheck

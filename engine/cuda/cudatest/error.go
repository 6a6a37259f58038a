package cudatest

import (
	"fmt"

	"github.com/edge-infer/edge-infer/engine"
)

// failure is the error of a driver call, nil for code 0.
func failure(op, subject string, code int) error {
	if code == 0 {
		return nil
	}
	return &engine.Error{Op: op, Backend: "cuda", Code: code, Message: fmt.Sprintf("%s: error %d", subject, code)}
}

// wrap adds the name of the call and its subject to an error of package cu.
func wrap(op, subject string, err error) error {
	if err == nil {
		return nil
	}
	return &engine.Error{Op: op, Backend: "cuda", Message: subject, Err: err}
}

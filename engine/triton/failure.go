package triton

import (
	"context"
	"errors"
	"strings"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/kserve"
)

// failure classifies the error of a request.
type failure int

const (
	refused   failure = iota // the request is invalid
	busy                     // the server is overloaded; another one may have capacity
	lost                     // the connection broke
	unhealthy                // the server failed or is unreachable
)

// classify returns the class of a request's error.
func classify(err error) failure {
	var s *kserve.Status
	if !errors.As(err, &s) {
		var mismatch *engine.Error
		switch {
		case errors.As(err, &mismatch), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
			return unhealthy
		}
		return lost
	}
	switch s.Code {
	case kserve.ResourceExhausted:
		return busy
	case kserve.Unavailable:
		for _, sign := range []string{"maximum queue size", "timeout expired", "too many"} {
			if strings.Contains(strings.ToLower(s.Message), sign) {
				return busy
			}
		}
	case kserve.InvalidArgument, kserve.OutOfRange:
		return refused
	}
	return unhealthy
}

package record

import (
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestARecordingThatTheEndOfTheRunCutsShort says nothing about its camera; one that ends by itself without video does.
func TestARecordingThatTheEndOfTheRunCutsShort(t *testing.T) {
	for _, ended := range []bool{true, false} {
		ctx, end := context.WithCancel(context.Background())
		if ended {
			end()
		}
		recorder := &Recorder{Logger: slog.New(slog.DiscardHandler), now: func() int64 { return 1 }}
		r := &recording{camera: &camera{name: "gate", recorder: recorder}, condition: &condition{}, events: []string{"1"}}
		r.finish(ctx)
		end()
		status := r.condition.status.Load()
		require.Equal(t, ended, status == nil, "%+v", status)
	}
}

package capture

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestDemoLossless(t *testing.T) {
	notify := make(chan struct{}, 1)
	c := &Camera{Name: "demo", URI: "demo?width=320&height=240&frames=20&seed=3", Lossless: true, Notify: notify}
	done := make(chan error, 1)
	go func() { done <- c.Run(context.Background()) }()
	var seen uint64
	deadline := time.After(30 * time.Second)
	for seen < 20 {
		select {
		case <-notify:
		case <-deadline:
			t.Fatal("no frame in time")
		}
		for f, ok := c.Take(); ok; f, ok = c.Take() {
			require.Equal(t, seen, f.Seq)
			require.NotEmpty(t, f.Truth)
			seen++
			f.Release()
		}
	}
	require.NoError(t, <-done)
	require.NoError(t, c.Close())
}

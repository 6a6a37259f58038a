//go:build !race

package report

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/zone"
)

// The race detector allocates on its own.
func TestBlockNoAllocations(t *testing.T) {
	shown := &Terminal{frames: map[string]*frameSummary{}, recent: make([]eventRow, 0, maxRecent)}
	in := frame(time.Now(), 0, 1, 1)
	in.Tracker = &pipeline.Tracker{Config: zone.Config{Lines: []zone.Line{{Name: "exit"}}, Zones: []zone.Zone{{Name: "dock"}}}}
	object := &zone.Object{Track: 3, Detection: postprocess.Detection{Class: 1}}
	in.Events = &zone.Result{Events: []zone.Event{{Kind: zone.Cross, Object: object}}}
	shown.note(in)
	require.Zero(t, testing.AllocsPerRun(100, func() { shown.note(in) }))
}

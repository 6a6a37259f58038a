package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/web/live"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/zone"
)

// TestEvents: the list, and the images, of which that of an object that has just come may be late and is waited for.
func TestEvents(t *testing.T) {
	var asked atomic.Int32
	snapshot := func(camera, id string) ([]byte, error) {
		switch id {
		case "1000000000.000000-7":
			if asked.Add(1) > 3 {
				return fmt.Appendf(nil, "jpeg of %s", camera), nil
			}
		case "broken":
			return nil, errors.New("secret path")
		}
		return nil, fs.ErrNotExist
	}
	server := &Server{Snapshot: snapshot, limits: defaultLimits()}
	server.limits.snapshot = testPatience
	serve(t, server, frames("cam0"))
	object := &zone.Object{
		Track: 7, Detection: postprocess.Detection{Box: postprocess.Box{X1: 1, Y1: 2, X2: 3, Y2: 4}}, TopScore: 0.91239, Start: time.Unix(1e9, 0),
	}
	in := &pipeline.Result{
		Camera: "cam0", Labels: []string{"bolt"}, Tracker: &pipeline.Tracker{Config: yard()},
		Events: &zone.Result{Events: []zone.Event{
			{Kind: zone.New, Seq: 5, Time: time.Unix(1e9, 0).UTC(), Object: object, Zone: -1, Line: -1},
			{Kind: zone.Leave, Seq: 6, Time: time.Unix(1e9+1, 0).UTC(), Object: object, Zone: 0, Line: -1, Dwell: 1500 * time.Millisecond},
			{Kind: zone.Cross, Seq: 7, Time: time.Unix(1e9+2, 0).UTC(), Object: object, Zone: -1, Line: 0, Direction: zone.In},
		}},
	}
	server.Frame(in)
	list := func(query string) (events []live.Event) {
		code, text, _ := ask(t, "GET", server.URL()+"api/events"+query, nil)
		require.Equal(t, http.StatusOK, code)
		require.NoError(t, json.Unmarshal([]byte(text), &events))
		return events
	}
	require.Eventually(t, func() bool { return len(list("")) == 3 }, testPatience, 10*time.Millisecond)
	common := live.Event{Object: "1000000000.000000-7", Camera: "cam0", Label: "bolt", Track: 7, Score: 0.912, Box: [4]float64{1, 2, 3, 4}}
	cross, leave := common, common
	cross.Number, cross.Type, cross.Seq, cross.Time, cross.Line, cross.Direction = 3, "cross", 7, time.Unix(1e9+2, 0).UTC(), "gate", "in"
	leave.Number, leave.Type, leave.Seq, leave.Time, leave.Zone, leave.DwellS = 2, "leave", 6, time.Unix(1e9+1, 0).UTC(), "inspection", 1.5
	require.Equal(t, []live.Event{cross, leave}, list("?limit=2"))
	require.Empty(t, list("?camera=cam1"))
	require.Equal(t, []live.Event{cross}, list("?camera=cam0&text=BOLT+gate"))
	require.Equal(t, []live.Event{leave}, list("?type=leave&limit=4096"))
	for query, want := range map[string]string{
		"limit=0": "limit must be 1 to 4096\n", "limit=4097": "limit must be 1 to 4096\n",
		"text=" + strings.Repeat("a", 201): "text must be at most 200 bytes\n",
	} {
		code, text, _ := ask(t, "GET", server.URL()+"api/events?"+query, nil)
		require.Equal(t, http.StatusBadRequest, code)
		require.Equal(t, want, text)
	}
	for id, want := range map[string]struct {
		code int
		text string
	}{
		"1000000000.000000-7": {200, "jpeg of cam0"}, "unknown": {404, "no snapshot\n"}, "broken": {500, "the snapshot cannot be read\n"},
	} {
		code, text, _ := ask(t, "GET", server.URL()+"api/cameras/cam0/events/"+id+"/snapshot.jpg", nil)
		require.Equal(t, want.code, code)
		require.Equal(t, want.text, text)
	}
	require.EqualValues(t, 4, asked.Load())
}

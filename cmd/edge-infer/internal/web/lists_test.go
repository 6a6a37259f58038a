package web

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/postprocess/zone"
)

func TestListsAreNeverNull(t *testing.T) {
	source := frames("a")
	server := &Server{Events: openStore(t)}
	serve(t, server, source)
	for _, path := range []string{"api/status", "api/events"} {
		code, text, _ := ask(t, "GET", server.URL()+path, nil)
		require.Equal(t, 200, code)
		require.NotContains(t, strings.ReplaceAll(text, `"ground":null`, ""), "null", path) // the ground is no list
	}
}

func TestWithListsCopies(t *testing.T) {
	type inner struct {
		Names []string
		Times map[string][]int
		Any   any
		Ref   *[]string
		At    time.Time
	}
	before := []inner{{}, {Names: []string{"x"}, Times: map[string][]int{"a": nil}, Any: zone.Zone{}, Ref: new([]string)}}
	data, err := json.Marshal(withLists(before))
	require.NoError(t, err)
	require.JSONEq(t, `[{"Names":[],"Times":{},"Any":null,"Ref":null,"At":"0001-01-01T00:00:00Z"},
		{"Names":["x"],"Times":{"a":[]},"Any":{"name":"","points":[],"labels":[],"anchor":"","inertia":0,"min_time":0,"loiter":0},"Ref":[],
		 "At":"0001-01-01T00:00:00Z"}]`, string(data))
	require.Nil(t, before[0].Names, "the value is not touched")
	require.Nil(t, *before[1].Ref)
	require.Nil(t, withLists(nil))
}

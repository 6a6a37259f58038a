package topic

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTopics(t *testing.T) {
	topics := Tree{Root: "site/a", Device: "gate"}
	require.NoError(t, topics.Check())
	for got, want := range map[string]string{
		topics.Available():                      "site/a/gate/available",
		topics.Status():                         "site/a/gate/status",
		topics.Stats():                          "site/a/gate/stats",
		topics.Error():                          "site/a/gate/error",
		topics.Detections("cam0"):               "site/a/gate/cam0/detections",
		topics.Events("cam0"):                   "site/a/gate/cam0/events",
		topics.Count("cam0", "traffic light"):   "site/a/gate/cam0/count/traffic light",
		topics.Zone("cam0", "yard", "person"):   "site/a/gate/cam0/zone/yard/person",
		topics.Line("cam0", "door"):             "site/a/gate/cam0/line/door",
		topics.Snapshot("cam0", "person"):       "site/a/gate/cam0/snapshot/person",
		topics.Snapshot("cam0", "set"):          "site/a/gate/cam0/snapshot/_set",
		topics.Set("cam0", "detect"):            "site/a/gate/cam0/detect/set",
		topics.State("cam0", "detect"):          "site/a/gate/cam0/detect/state",
		topics.Set("", "reload"):                "site/a/gate/reload/set",
		topics.Detections("rtsp://a/b+c#d\x00"): "site/a/gate/rtsp:%2F%2Fa%2Fb%2Bc%23d%00/detections",
		topics.Detections(""):                   "site/a/gate/_/detections",
		topics.Detections("\xff"):               "site/a/gate/%FF/detections",
	} {
		assert.Equal(t, want, got)
	}
}

// TestLevelsAreDistinct: two names never share a topic, and plain names are levels as they are.
func TestLevelsAreDistinct(t *testing.T) {
	names := map[string]string{}
	for _, name := range []string{
		"", "_", "__", "%5F", "%255F", "set", "_set", "__set", "%5Fset", "state", "_state", "a/b", "a_b", "a+b", "a#b", "a%2Fb", "a%252Fb",
		"a%2/b",
		"a%/b", "a\x00b", "a\x7fb", "\xff", "\xfe", "\ufffd", strings.Repeat("x", 256), strings.Repeat("x", 257), strings.Repeat("x", 258),
		strings.Repeat("/", 300), strings.Repeat("/", 301),
	} {
		level := Level(name)
		require.NotContains(t, names, level, "%q and %q", name, names[level])
		names[level] = name
		require.LessOrEqual(t, len(level), 256)
	}
	for _, name := range []string{"person", "traffic light", "50%", "50% off", "kü", "Tür-1", "a_b", "all", "a.b", "日本"} {
		require.Equal(t, name, Level(name))
	}
	counted := map[string]bool{Total: true}
	for _, label := range []string{"all", "_all", "__all", "al", "wall", "person"} {
		require.False(t, counted[CountLabel(label)], label)
		counted[CountLabel(label)] = true
	}
	require.Equal(t, "person", CountLabel("person"))
}

// FuzzLevels requires different levels of different names.
func FuzzLevels(f *testing.F) {
	f.Add("a/b", "a_b")
	f.Add("a%2Fb", "a/b")
	f.Fuzz(func(t *testing.T, a, b string) {
		if a != b && Level(a) == Level(b) {
			t.Fatalf("%q and %q are %q", a, b, Level(a))
		}
	})
}

func TestPlaces(t *testing.T) {
	topics := Tree{Root: "site/a", Device: "gate"}
	for topic, want := range map[string][3]string{
		topics.CameraAvailable("cam0"):             {"cam0", "", ""},
		topics.Image("cam0"):                       {"cam0", "", ""},
		topics.Snapshot("cam0", "person"):          {"cam0", "", ""},
		topics.Count("cam0", "person"):             {"cam0", "", ""},
		topics.State("cam0", "detect"):             {"cam0", "", ""},
		topics.Zone("cam0", "yard", "person"):      {"cam0", "yard", ""},
		topics.Zone("zone", "zone", "zone"):        {"zone", "zone", ""},
		topics.Line("cam0", "door"):                {"cam0", "", "door"},
		topics.LineLabel("line", "door", "person"): {"line", "", "door"},
	} {
		camera, zone, line, ok := topics.Place(topic)
		assert.True(t, ok, topic)
		assert.Equal(t, want, [3]string{camera, zone, line}, topic)
	}
	for _, topic := range []string{
		topics.Available(), topics.Status(), topics.Detections("cam0"), topics.Events("cam0"), topics.Set("cam0", "detect"),
		topics.Set("", "reload"), topics.Base(), topics.Base() + "cam0/notes", topics.Base() + "cam0/zone/yard",
		"site/a/other/cam0/available", "site/a/gate", "",
	} {
		_, _, _, ok := topics.Place(topic)
		assert.False(t, ok, topic)
	}
}

func TestTopicsCheck(t *testing.T) {
	for _, c := range []struct{ root, device, want string }{
		{"edge-infer", "", "device name is empty (set it, or give the machine a host name)"},
		{"edge-infer", "a/b", `device name "a/b" cannot be a topic level (leave out + / # and a leading $)`},
		{"edge-infer", "a+", `device name "a+" cannot be a topic level (leave out + / # and a leading $)`},
		{"edge-infer", "#", `device name "#" cannot be a topic level (leave out + / # and a leading $)`},
		{"edge-infer", "$SYS", `device name "$SYS" cannot be a topic level (leave out + / # and a leading $)`},
		{"edge-infer", "a\xff", `device name "a\xff" cannot be a topic level (leave out + / # and a leading $)`},
		{"", "a", `topic root "" cannot start a topic (leave out + # and a leading $ or slash)`},
		{"a/#", "a", `topic root "a/#" cannot start a topic (leave out + # and a leading $ or slash)`},
		{"/a", "a", `topic root "/a" cannot start a topic (leave out + # and a leading $ or slash)`},
		{"a", strings.Repeat("x", 600), "topic root and device name have 603 bytes, at most 512 are allowed"},
	} {
		assert.EqualError(t, Tree{Root: c.root, Device: c.device}.Check(), c.want)
	}
}

// FuzzTopics makes sure that no name of a camera, zone or label leaves the device's tree, reaches a control's topic or breaks a filter.
func FuzzTopics(f *testing.F) {
	for _, seed := range []string{"cam0", "", "/", "a/../b", "+", "#", "set", "state", "\x00", "\xf0\x28", strings.Repeat("é", 300)} {
		f.Add(seed, seed)
	}
	f.Fuzz(func(t *testing.T, camera, label string) {
		topics := Tree{Root: "edge-infer", Device: "gate"}
		for topic, depth := range map[string]int{
			topics.Detections(camera): 4, topics.Count(camera, label): 5, topics.Zone(camera, label, camera): 6, topics.Snapshot(camera, label): 5,
		} {
			require.True(t, strings.HasPrefix(topic, "edge-infer/gate/"))
			require.Len(t, strings.Split(topic, "/"), depth)
			require.NotContains(t, strings.Split(topic, "/"), "")
			require.False(t, strings.ContainsAny(topic, "+#\x00"))
			require.False(t, strings.HasSuffix(topic, "/set") || strings.HasSuffix(topic, "/state"))
			require.Less(t, len(topic), 1000)
		}
	})
}

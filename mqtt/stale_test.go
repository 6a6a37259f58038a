package mqtt

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/mqtt/homeassistant"
	"github.com/edge-infer/edge-infer/mqtt/mqtttest"
)

// leave has an earlier process publish everything of cameras, and says on which topics.
func leave(t *testing.T, m *mqtttest.Mosquitto, cameras ...homeassistant.Camera) (topics []string) {
	t.Helper()
	earlier := testClient("tcp://" + m.Address)
	stop := start(t, earlier)
	topics = publishAll(earlier, cameras...)
	for _, camera := range cameras {
		earlier.Available(camera.Name, true)
		topics = append(topics, earlier.topics.CameraAvailable(camera.Name))
	}
	waitDelivered(t, earlier)
	stop()
	return topics
}

func TestWhatAnEarlierProcessLeftIsCleared(t *testing.T) {
	withoutZone, withoutLine := frontCamera, frontCamera
	withoutZone.Zones, withoutLine.Lines = []string{"drive"}, nil
	for _, test := range []struct {
		name string
		now  []homeassistant.Camera
		stay func(topic string) bool
	}{
		{"nothing has changed", []homeassistant.Camera{frontCamera, backCamera}, func(string) bool { return true }},
		{"a camera is gone", []homeassistant.Camera{backCamera}, func(topic string) bool { return !of(topic, "front/") }},
		{"all are gone", nil, func(string) bool { return false }},
		{"a zone is gone", []homeassistant.Camera{withoutZone, backCamera}, func(topic string) bool { return !of(topic, "front/zone/yard/") }},
		{"a line is gone", []homeassistant.Camera{withoutLine, backCamera}, func(topic string) bool { return !of(topic, "front/line/door") }},
	} {
		t.Run(test.name, func(t *testing.T) {
			mqtttest.NoLeaks(t)
			m := mqtttest.StartMosquitto(t, "allow_anonymous true")
			left := leave(t, m, frontCamera, backCamera)
			m.Publish("edge-infer/gate/front/notes", "somebody's", "-r")
			m.Publish("edge-infer/gate/front/detect/set", "ON", "-r")
			m.Publish("edge-infer/other/front/available", "online", "-r")
			c := testClient("tcp://" + m.Address)
			start(t, c)
			waitConnected(t, c)
			require.NoError(t, c.Announce(&homeassistant.Announcement{Cameras: test.now}))
			want := []string{"edge-infer/gate/front/notes", "edge-infer/gate/front/detect/set", "edge-infer/other/front/available"}
			for _, topic := range left {
				if test.stay(topic) {
					want = append(want, topic)
				}
			}
			slices.Sort(want)
			looked(t, c)
			assert.Equal(t, want, retained(t, m))
		})
	}
}

func of(topic, prefix string) bool { return strings.HasPrefix(topic, "edge-infer/gate/"+prefix) }

// looked waits until the client has looked for what was left.
func looked(t *testing.T, c *Client) {
	t.Helper()
	require.Eventually(t, func() bool {
		c.outbox.mu.Lock()
		defer c.outbox.mu.Unlock()
		return len(c.stale.checked) > 0
	}, mqtttest.Patience, time.Millisecond)
}

// TestWhatIsPublishedIsNotLeft: a camera that is not announced keeps what this process publishes of it.
func TestWhatIsPublishedIsNotLeft(t *testing.T) {
	m := mqtttest.StartMosquitto(t, "allow_anonymous true")
	leave(t, m, frontCamera)
	c := testClient("tcp://" + m.Address)
	require.NoError(t, c.Open())
	require.NoError(t, c.Announce(&homeassistant.Announcement{}))
	c.Count("front", "person", 3)
	begin(t, c)
	looked(t, c)
	waitDelivered(t, c)
	assert.Equal(t, []string{"edge-infer/gate/front/count/person"}, retained(t, m))
}

// TestABrokerThatTellsNothing lets the client write alone, and holds nothing up.
func TestABrokerThatTellsNothing(t *testing.T) {
	acl := filepath.Join(t.TempDir(), "acl")
	require.NoError(t, os.WriteFile(acl, []byte("topic write edge-infer/#\n"), 0o644))
	m := mqtttest.StartMosquitto(t, "allow_anonymous true", "acl_file "+acl)
	c := testClient("tcp://" + m.Address)
	start(t, c)
	require.NoError(t, c.Announce(&homeassistant.Announcement{}))
	c.Count("front", "person", 3)
	looked(t, c)
	waitDelivered(t, c)
}

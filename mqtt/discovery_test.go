package mqtt

import (
	"context"
	"encoding/json"
	"os/exec"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func announcement() *Announcement {
	return &Announcement{
		Manufacturer: "NVIDIA", Model: "Orin Nano", Serial: "1421", Version: "1.0", URL: "http://gate:8080/",
		Cameras: []AnnouncedCamera{
			{Name: "cam0", Labels: []string{"person", "traffic light"}, Zones: []string{"yard"}, Lines: []string{"door"}},
			{Name: `odd "camera"/#`, Labels: []string{"person", "per/son", "per_son"}},
		},
		Temperatures: []string{"tj"}, Power: []string{"VDD_IN"}, Loads: []string{"cpu", "GPU"}, PowerMode: true,
	}
}

type discovered struct {
	Device struct {
		Identifiers []string
		Name        string
	}
	Availability []map[string]string
	Components   map[string]map[string]any
}

func TestDiscoveryBundle(t *testing.T) {
	broker := startBroker(t, "")
	sub := subscribe(t, broker.URL(), "homeassistant/#")
	c := testClient(broker.URL())
	c.DiscoveryPrefix, c.Device, c.Controller = "homeassistant", "gate 7", &recorder{}
	start(t, c)
	require.NoError(t, c.Announce(announcement()))
	topic := "homeassistant/device/edge-infer-gate_7/config"
	require.Eventually(t, func() bool { return sub.last(topic) != "" }, patience, time.Millisecond)
	payload := sub.last(topic)
	require.NoError(t, validate(t, schemas(t)["discovery"], payload))
	var got discovered
	require.NoError(t, json.Unmarshal([]byte(payload), &got))
	assert.Equal(t, []string{"edge-infer-gate_7"}, got.Device.Identifiers)
	assert.Equal(t, "gate 7", got.Device.Name)
	assert.Equal(t, "edge-infer/gate 7/available", got.Availability[0]["topic"])
	platforms, unique := map[string]int{}, map[any]bool{}
	for key, component := range got.Components {
		assert.Regexp(t, regexp.MustCompile(`^[a-zA-Z0-9_-]+$`), key)
		assert.False(t, unique[component["unique_id"]], "unique_id of %s is taken", key)
		unique[component["unique_id"]] = true
		platforms[component["platform"].(string)]++
	}
	assert.Equal(t, map[string]int{"sensor": 27, "binary_sensor": 4, "image": 5, "switch": 2, "number": 4, "text": 2, "button": 4}, platforms)
	assert.Equal(t, map[string]any{
		"platform": "sensor", "name": "cam0 traffic light", "unique_id": "edge-infer-gate_7_cam0_count_traffic_light",
		"state_topic": "edge-infer/gate 7/cam0/count/traffic light", "state_class": "measurement",
	}, got.Components["cam0_count_traffic_light"])
	assert.Equal(t, `{{ value_json["cameras"]["odd \"camera\"/#"]["fps_inferred"] }}`, got.Components["odd__camera____fps"]["value_template"])
	assert.Equal(t, "edge-infer/gate 7/cam0/detect/set", got.Components["cam0_detect"]["command_topic"])
}

func TestDiscoveryIsRepeatedAtBirth(t *testing.T) {
	broker := startBroker(t, "")
	sub := subscribe(t, broker.URL(), "homeassistant/device/#")
	c := testClient(broker.URL())
	c.DiscoveryPrefix = "homeassistant"
	start(t, c)
	waitConnected(t, c)
	require.NoError(t, c.Announce(announcement()))
	topic := "homeassistant/device/edge-infer-gate/config"
	require.Eventually(t, func() bool { return len(sub.messages(topic)) > 0 }, patience, time.Millisecond)
	before := len(sub.messages(topic))
	require.Eventually(t, func() bool {
		sub.client.Publish("homeassistant/status", 1, false, "online").WaitTimeout(patience)
		return len(sub.messages(topic)) > before
	}, patience, 50*time.Millisecond)
	a := balanced(t, c)
	assert.Equal(t, uint64(1), a.State.Offered, "a repetition is no new message")
}

func TestDiscoveryCanBeTurnedOff(t *testing.T) {
	broker := startBroker(t, "")
	sub := subscribe(t, broker.URL(), "#")
	c := testClient(broker.URL())
	start(t, c)
	require.NoError(t, c.Announce(announcement()))
	c.Count("cam0", "person", 1)
	sub.waitLast(t, "edge-infer/gate/cam0/count/person", "1")
	sub.mu.Lock()
	defer sub.mu.Unlock()
	for _, m := range sub.got {
		assert.NotContains(t, m.topic, "homeassistant")
	}
}

func TestForgetClearsTheBroker(t *testing.T) {
	broker := startBroker(t, "")
	c := testClient(broker.URL())
	c.DiscoveryPrefix = "homeassistant"
	stop := start(t, c)
	require.NoError(t, c.Announce(announcement()))
	for i := range 200 {
		c.Count("cam0", "label"+string(rune('a'+i%26))+string(rune('a'+i/26)), i)
	}
	c.Status(&Status{})
	waitConnected(t, c)
	require.Eventually(t, func() bool { return c.Accounting().State.Queued == 0 }, patience, time.Millisecond)
	stop()
	other := testClient(broker.URL())
	other.Device = "other"
	start(t, other)
	waitConnected(t, other)
	watch := subscribe(t, broker.URL(), "edge-infer/other/available")
	watch.waitLast(t, "edge-infer/other/available", "online")

	again := testClient(broker.URL())
	again.DiscoveryPrefix = "homeassistant"
	require.NoError(t, again.Open())
	defer again.Close()
	cleared, err := again.Forget(context.Background())
	require.NoError(t, err)
	assert.Equal(t, 203, cleared) // 200 counts, status, available, discovery
	sub := subscribe(t, broker.URL(), "edge-infer/#", "homeassistant/#")
	sub.waitLast(t, "edge-infer/other/available", "online")
	sub.mu.Lock()
	defer sub.mu.Unlock()
	assert.Len(t, sub.got, 1, "only the other device is left")
}

func TestForgetWithoutBroker(t *testing.T) {
	c := testClient("tcp://user:hunter2@" + freeAddress(t))
	require.NoError(t, c.Open())
	defer c.Close()
	_, err := c.Forget(context.Background())
	require.ErrorContains(t, err, "connection refused")
	assert.NotContains(t, err.Error(), "hunter2")
}

// lookPath skips the test when a program is missing.
func lookPath(t testing.TB, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		if path, err = exec.LookPath("/usr/sbin/" + program); err != nil {
			t.Skipf("%s is not installed (make deps installs it)", program)
		}
	}
	return path
}

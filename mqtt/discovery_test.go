package mqtt

import (
	"context"
	"encoding/json"
	"fmt"
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
	"github.com/edge-infer/edge-infer/mqtt/payload"
)

func announcement() *homeassistant.Announcement {
	return &homeassistant.Announcement{
		Manufacturer: "NVIDIA", Model: "Orin Nano", Serial: "1421", Version: "1.0", URL: "http://gate:8080/",
		Cameras: []homeassistant.Camera{
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
	Components map[string]map[string]any
}

// discoveredOn are the retained discovery messages of a broker, by the part of the topic that names them.
func discoveredOn(t *testing.T, m *mqtttest.Mosquitto) map[string]discovered {
	t.Helper()
	sub := mqtttest.Subscribe(t, "tcp://"+m.Address, "homeassistant/#", "last")
	m.Publish("last", "message")
	sub.WaitLast(t, "last", "message")
	schema := schemas(t)["discovery"]
	found := map[string]discovered{}
	for _, message := range sub.All() {
		part, isDiscovery := strings.CutPrefix(message.Topic, "homeassistant/device/edge-infer-gate/")
		if !isDiscovery || !message.Retained {
			continue
		}
		require.NoError(t, validate(t, schema, message.Payload), message.Payload)
		var d discovered
		require.NoError(t, json.Unmarshal([]byte(message.Payload), &d))
		found[strings.TrimSuffix(part, "/config")] = d
	}
	return found
}

func TestDiscoveryIsRepeatedAtBirth(t *testing.T) {
	broker := startBroker(t, "")
	sub := mqtttest.Subscribe(t, broker.URL(), "homeassistant/device/#")
	c := testClient(broker.URL())
	c.DiscoveryPrefix = "homeassistant"
	start(t, c)
	waitConnected(t, c)
	require.NoError(t, c.Announce(announcement()))
	topics := []string{"hub", "camera-cam0", "camera-odd__camera___-e6807b60"}
	for i, part := range topics {
		topics[i] = "homeassistant/device/edge-infer-gate/" + part + "/config"
		require.Eventually(t, func() bool { return len(sub.Messages(topics[i])) > 0 }, mqtttest.Patience, time.Millisecond)
	}
	before := map[string]int{}
	for _, topic := range topics {
		before[topic] = len(sub.Messages(topic))
	}
	require.NoError(t, c.Announce(announcement()))
	require.Eventually(t, func() bool {
		sub.Client.Publish("homeassistant/status", 1, false, "online").WaitTimeout(mqtttest.Patience)
		return !slices.ContainsFunc(topics, func(topic string) bool { return len(sub.Messages(topic)) == before[topic] })
	}, mqtttest.Patience, 50*time.Millisecond)
	assert.Equal(t, uint64(7), balanced(t, c).State.Offered, "a repetition is no new message, nor is what has not changed")
}

func TestDiscoveryCanBeTurnedOff(t *testing.T) {
	m := mqtttest.StartMosquitto(t, "allow_anonymous true")
	directory := t.TempDir()
	run := func(prefix string) (stop func() time.Duration) {
		c := testClient("tcp://" + m.Address)
		c.Spool.Directory, c.DiscoveryPrefix = directory, prefix
		stop = start(t, c)
		require.NoError(t, c.Announce(announcement()))
		waitDelivered(t, c)
		return stop
	}
	run("")()
	require.Empty(t, discoveredOn(t, m))
	run("homeassistant")()
	require.Len(t, discoveredOn(t, m), 3)
	run("")()
	require.Empty(t, discoveredOn(t, m), "what an earlier run has announced is taken away")
}

// TestWhatGoesWhileStoppedGoesFromHomeAssistant changes the cameras between two runs.
func TestWhatGoesWhileStoppedGoesFromHomeAssistant(t *testing.T) {
	m := mqtttest.StartMosquitto(t, "allow_anonymous true")
	directory := t.TempDir()
	run := func(cameras ...homeassistant.Camera) (found map[string]discovered) {
		c := testClient("tcp://" + m.Address)
		c.Spool.Directory, c.DiscoveryPrefix, c.Controller = directory, "homeassistant", &recorder{}
		stop := start(t, c)
		require.NoError(t, c.Announce(&homeassistant.Announcement{Cameras: cameras}))
		waitDelivered(t, c)
		found = discoveredOn(t, m)
		stop()
		return found
	}
	all := run(frontCamera, backCamera)
	require.Len(t, all, 3)
	smaller := frontCamera
	smaller.Zones, smaller.Lines = []string{"drive"}, nil
	changed := run(smaller)
	require.NotContains(t, changed, "camera-back", "a camera that is gone is cleared")
	removed := 0
	for key, component := range changed["camera-front"].Components {
		if len(component) == 1 {
			assert.Equal(t, all["camera-front"].Components[key]["platform"], component["platform"], key)
			removed++
		}
	}
	assert.Equal(t, 3, removed, "a zone and both directions of a line")
	again := run(smaller)
	for key, component := range again["camera-front"].Components {
		assert.Greater(t, len(component), 1, "%s was removed in the run before", key)
	}
	back := run(frontCamera, backCamera)
	for part, d := range back {
		for key, component := range d.Components {
			if len(component) == 1 { // had taken the place of what is there again
				delete(d.Components, key)
			}
		}
		require.True(t, assert.ObjectsAreEqual(all[part], d), "%s: what comes back is whole again", part)
	}
	saved, err := os.ReadFile(filepath.Join(directory, announcedName))
	require.NoError(t, err)
	assert.NotContains(t, string(saved), `"removed"`, "Home Assistant has been told")
}

// TestRemovalOutlastsABrokerThatIsAway has the process end before Home Assistant was told. TestAnotherTaskHasOtherEntities: a camera whose
// network is exchanged has what the new one gives, and nothing of the old one.
func TestAnotherTaskHasOtherEntities(t *testing.T) {
	m := mqtttest.StartMosquitto(t, "allow_anonymous true")
	c := testClient("tcp://" + m.Address)
	c.DiscoveryPrefix, c.Controller = "homeassistant", &recorder{}
	start(t, c)
	waitConnected(t, c)
	gone := ""
	for _, task := range []struct {
		only   string // of its entities
		camera homeassistant.Camera
	}{
		{"count", homeassistant.Camera{Labels: []string{"person"}}},
		{"class", homeassistant.Camera{Classifier: true, Classes: []string{"open", "shut"}}},
		{"share__road", homeassistant.Camera{Classes: []string{"road"}}},
		{"depth_", homeassistant.Camera{DepthUnit: "m"}},
		{"class", homeassistant.Camera{Classifier: true}},
		{"count", homeassistant.Camera{Labels: []string{"person"}}},
	} {
		task.camera.Name = "cam0"
		require.NoError(t, c.Announce(&homeassistant.Announcement{Cameras: []homeassistant.Camera{task.camera}}))
		waitDelivered(t, c)
		found, left := discoveredOn(t, m)["camera-cam0"].Components, 0
		for _, component := range found {
			if len(component) > 1 {
				left++
			}
		}
		require.Less(t, left, 15)
		require.Contains(t, found[task.only], "state_topic")
		if gone != "" {
			require.Len(t, found[gone], 1, "%s: the platform alone takes it away", gone)
		}
		gone = task.only
	}
}

func TestRemovalOutlastsABrokerThatIsAway(t *testing.T) {
	m := startLasting(t)
	directory := t.TempDir()
	client := func() *Client {
		c := testClient("tcp://" + m.Address)
		c.Spool.Directory, c.DiscoveryPrefix = directory, "homeassistant"
		return c
	}
	c := client()
	stop := start(t, c)
	require.NoError(t, c.Announce(&homeassistant.Announcement{Cameras: []homeassistant.Camera{frontCamera, backCamera}}))
	waitDelivered(t, c)
	stop()
	m.Stop()
	for range 2 {
		c = client()
		stop = start(t, c)
		require.NoError(t, c.Announce(&homeassistant.Announcement{Cameras: []homeassistant.Camera{frontCamera}}))
		stop()
	}
	m.Start()
	require.Contains(t, discoveredOn(t, m), "camera-back")
	c = client()
	start(t, c)
	require.NoError(t, c.Announce(&homeassistant.Announcement{Cameras: []homeassistant.Camera{frontCamera}}))
	waitDelivered(t, c)
	require.NotContains(t, discoveredOn(t, m), "camera-back")
}

func TestAnnouncedThatCannotBeRead(t *testing.T) {
	for _, text := range []string{"null", "[]", "x"} {
		log := &mqtttest.Journal{}
		c := testClient("tcp://127.0.0.1:1")
		c.Spool.Directory, c.DiscoveryPrefix, c.Logger = t.TempDir(), "homeassistant", log.Logger()
		require.NoError(t, os.WriteFile(filepath.Join(c.Spool.Directory, announcedName), []byte(text), 0o600))
		require.NoError(t, c.Open())
		require.NoError(t, c.Announce(announcement()))
		require.NoError(t, c.Close())
		assert.Equal(t, text != "null", strings.Contains(log.String(), "previous Home Assistant discovery cannot be read"))
	}
}

// TestDiscoveryFitsASmallBroker announces everything of a model of 80 classes to a broker that takes 8 KiB.
func TestDiscoveryFitsASmallBroker(t *testing.T) {
	m := mqtttest.StartMosquitto(t, "allow_anonymous true", "max_packet_size 8192")
	c := testClient("tcp://" + m.Address)
	c.DiscoveryPrefix, c.Controller, c.MaxPacket = "homeassistant", &recorder{}, 8192
	start(t, c)
	a := &homeassistant.Announcement{Labels: []string{"*"}}
	for _, name := range []string{"front", "back"} {
		camera := homeassistant.Camera{Name: name, Zones: []string{"yard", "drive", "porch"}}
		for i := range 80 {
			camera.Labels = append(camera.Labels, fmt.Sprint("label", i))
		}
		a.Cameras = append(a.Cameras, camera)
	}
	require.NoError(t, c.Announce(a))
	waitDelivered(t, c)
	assert.Zero(t, c.Health().Oversize.Messages)
	entities := 0
	for _, d := range discoveredOn(t, m) {
		entities += len(d.Components)
	}
	assert.Greater(t, entities, 2*80*6)
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
	c.Status(&payload.Status{})
	waitConnected(t, c)
	require.Eventually(t, func() bool { return c.Accounting().State.Queued == 0 }, mqtttest.Patience, time.Millisecond)
	stop()
	other := testClient(broker.URL())
	other.Device = "other"
	start(t, other)
	waitConnected(t, other)
	watch := mqtttest.Subscribe(t, broker.URL(), "edge-infer/other/available")
	watch.WaitLast(t, "edge-infer/other/available", "online")

	again := testClient(broker.URL())
	again.DiscoveryPrefix = "homeassistant"
	require.NoError(t, again.Open())
	defer again.Close()
	cleared, err := again.Forget(context.Background())
	require.NoError(t, err)
	assert.Equal(t, 209, cleared) // 204 counts, status, available, discovery of the machine and two cameras
	sub := mqtttest.Subscribe(t, broker.URL(), "edge-infer/#", "homeassistant/#")
	sub.WaitLast(t, "edge-infer/other/available", "online")
	assert.Len(t, sub.All(), 1, "only the other device is left")
}

func TestForgetWithoutBroker(t *testing.T) {
	c := testClient("tcp://user:hunter2@" + mqtttest.FreeAddress(t))
	require.NoError(t, c.Open())
	defer c.Close()
	_, err := c.Forget(context.Background())
	require.ErrorContains(t, err, "connection refused")
	assert.NotContains(t, err.Error(), "hunter2")
}

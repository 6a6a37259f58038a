package mqtt

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// publishAll publishes on every retained topic of each camera, and says which those are.
func publishAll(c *Client, cameras ...AnnouncedCamera) (topics []string) {
	t := Topics{Root: "edge-infer", Device: c.Device}
	for _, camera := range cameras {
		c.Settings(camera.Name, Settings{Detect: true, Threshold: 0.25, Interval: 1})
		for _, control := range []string{controlDetect, controlThreshold, controlInterval, controlLabels} {
			topics = append(topics, t.State(camera.Name, control))
		}
		for _, label := range camera.Labels {
			c.Count(camera.Name, label, 1)
			c.Snapshot(camera.Name, label, []byte("picture"))
			topics = append(topics, t.Count(camera.Name, label), t.Snapshot(camera.Name, label))
			for _, zone := range camera.Zones {
				c.Zone(camera.Name, zone, label, 1)
				topics = append(topics, t.Zone(camera.Name, zone, label))
			}
			for _, line := range camera.Lines {
				c.LineLabel(camera.Name, line, label, 1, 2)
				topics = append(topics, t.LineLabel(camera.Name, line, label))
			}
		}
		for _, line := range camera.Lines {
			c.Line(camera.Name, line, 1, 2)
			topics = append(topics, t.Line(camera.Name, line))
		}
	}
	return topics
}

// retained are the topics below the device that a new subscriber gets values of, without the device's own.
func retained(t *testing.T, m *mosquitto) (topics []string) {
	t.Helper()
	// The broker sends what it retains in the order of its tree; a message that is published afterwards comes behind all of them.
	sub := subscribe(t, "tcp://"+m.address, "edge-infer/#", "last")
	m.publish("last", "message")
	sub.waitLast(t, "last", "message")
	sub.mu.Lock()
	defer sub.mu.Unlock()
	for _, got := range sub.got {
		if got.retained && got.topic != "edge-infer/gate/available" {
			topics = append(topics, got.topic)
		}
	}
	slices.Sort(topics)
	return topics
}

// startLasting runs a mosquitto that keeps what it retains when it is stopped and started again.
func startLasting(t *testing.T) *mosquitto {
	t.Helper()
	return startMosquitto(t, "allow_anonymous true", "persistence true", "persistence_location "+t.TempDir()+"/")
}

func sorted(topics []string) []string { return slices.Sorted(slices.Values(topics)) }

func waitDelivered(t *testing.T, c *Client) {
	t.Helper()
	waitConnected(t, c)
	require.Eventually(t, func() bool { return c.Accounting().State.Queued == 0 }, patience, time.Millisecond)
}

var (
	frontCamera = AnnouncedCamera{Name: "front", Labels: []string{"all", "person"}, Zones: []string{"yard", "drive"}, Lines: []string{"door"}}
	backCamera  = AnnouncedCamera{Name: "back", Labels: []string{"all", "dog"}, Zones: []string{"yard"}, Lines: []string{"door"}}
)

func TestWhatIsNotAnnouncedAnyMoreIsCleared(t *testing.T) {
	withoutZone, withoutLine := frontCamera, frontCamera
	withoutZone.Zones, withoutLine.Lines = []string{"drive"}, nil
	renamed := backCamera
	renamed.Name = "rear"
	for _, test := range []struct {
		name  string
		after []AnnouncedCamera
	}{
		{"nothing changes", []AnnouncedCamera{frontCamera, backCamera}},
		{"a camera goes", []AnnouncedCamera{frontCamera}},
		{"a camera gets another name", []AnnouncedCamera{frontCamera, renamed}},
		{"a zone goes", []AnnouncedCamera{withoutZone, backCamera}},
		{"a line goes", []AnnouncedCamera{withoutLine, backCamera}},
		{"everything goes", nil},
	} {
		for _, away := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, broker away %v", test.name, away), func(t *testing.T) {
				noLeaks(t)
				m := startLasting(t)
				c := testClient("tcp://" + m.address)
				start(t, c)
				before := publishAll(c, frontCamera, backCamera)
				require.NoError(t, c.Announce(&Announcement{Cameras: []AnnouncedCamera{frontCamera, backCamera}}))
				waitDelivered(t, c)
				require.Equal(t, sorted(before), retained(t, m))
				if away {
					m.stop()
					require.Eventually(t, func() bool { return !c.Connection().Connected }, patience, time.Millisecond)
				}
				after := publishAll(c, test.after...)
				require.NoError(t, c.Announce(&Announcement{Cameras: test.after}))
				if away {
					m.start()
				}
				waitDelivered(t, c)
				assert.Equal(t, sorted(after), retained(t, m))
				balanced(t, c)
			})
		}
	}
}

func TestAClearedTopicTakesValuesAgain(t *testing.T) {
	m := startMosquitto(t, "allow_anonymous true")
	c := testClient("tcp://" + m.address)
	start(t, c)
	both := &Announcement{Cameras: []AnnouncedCamera{frontCamera, backCamera}}
	publishAll(c, both.Cameras...)
	require.NoError(t, c.Announce(&Announcement{Cameras: both.Cameras[:1]}))
	waitDelivered(t, c)
	offered := c.Accounting().State.Offered
	require.NoError(t, c.Announce(&Announcement{Cameras: both.Cameras[:1]}))
	assert.Equal(t, offered, c.Accounting().State.Offered, "nothing is cleared twice")
	again := publishAll(c, both.Cameras...)
	require.NoError(t, c.Announce(both))
	waitDelivered(t, c)
	assert.Equal(t, sorted(again), retained(t, m))
	require.NoError(t, c.Announce(&Announcement{}))
	waitDelivered(t, c)
	assert.Empty(t, retained(t, m))
}

// TestEveryBrokerIsCleared has the second broker of the list hold values from a time when the first was away.
func TestEveryBrokerIsCleared(t *testing.T) {
	first, second := startLasting(t), startLasting(t)
	first.stop()
	c := testClient("tcp://"+first.address, "tcp://"+second.address)
	start(t, c)
	all := publishAll(c, frontCamera, backCamera)
	waitDelivered(t, c)
	require.Equal(t, sorted(all), retained(t, second))
	first.start()
	second.stop()
	require.Eventually(t, func() bool { return c.Connection().Broker == "tcp://"+first.address }, patience, time.Millisecond)
	waitDelivered(t, c)
	require.Eventually(t, func() bool { return len(retained(t, first)) == len(all) }, patience, 10*time.Millisecond)
	require.NoError(t, c.Announce(&Announcement{Cameras: []AnnouncedCamera{backCamera}}))
	waitDelivered(t, c)
	second.start()
	first.stop()
	require.Eventually(t, func() bool { return c.Connection().Broker == "tcp://"+second.address }, patience, time.Millisecond)
	want := sorted(publishAll(c, backCamera))
	require.Eventually(t, func() bool { return slices.Equal(want, retained(t, second)) }, patience, 10*time.Millisecond)
}

// TestNamesThatShareATopic has two cameras whose names become the same topic level.
func TestNamesThatShareATopic(t *testing.T) {
	broker := startBroker(t, "")
	sub := subscribe(t, broker.URL(), "edge-infer/#")
	c := testClient(broker.URL())
	start(t, c)
	c.Count("a/b", "dog", 1)
	c.Count("a_b", "dog", 2)
	c.Count("a/b", "cat", 3)
	waitDelivered(t, c)
	require.NoError(t, c.Announce(&Announcement{Cameras: []AnnouncedCamera{{Name: "a_b"}}}))
	waitDelivered(t, c)
	c.Count("a_b", "end", 1)
	sub.waitLast(t, "edge-infer/gate/a_b/count/end", "1")
	assert.Equal(t, "2", sub.last("edge-infer/gate/a_b/count/dog"))
	assert.Equal(t, []string{"3", ""}, sub.messages("edge-infer/gate/a_b/count/cat"))
}

func TestACommandThatOutlastsItsCameraPublishesNothing(t *testing.T) {
	c := testClient("tcp://127.0.0.1:1")
	c.Controller = &recorder{}
	require.NoError(t, c.Open())
	defer c.Close()
	c.Settings("front", Settings{})
	require.NoError(t, c.Announce(&Announcement{}))
	offered := c.Accounting().State.Offered
	require.NoError(t, c.carryOut(command{camera: "front", control: controlThreshold, threshold: 0.5}))
	assert.Equal(t, offered, c.Accounting().State.Offered)
	_, known := c.cameras["front"]
	assert.False(t, known, "no command for it is taken any more")
}

// TestChangingNamesFindRoom announces another zone over and over, of many labels.
func TestChangingNamesFindRoom(t *testing.T) {
	broker := startBroker(t, "")
	c := testClient(broker.URL())
	start(t, c)
	waitConnected(t, c)
	for i := range 3 * slotLimit / 2000 {
		zone := fmt.Sprint("zone", i)
		for label := range 1000 {
			c.Zone("front", zone, fmt.Sprint(label), 1)
		}
		c.Detections(frame("camera"+zone, 1))
		require.NoError(t, c.Announce(&Announcement{Cameras: []AnnouncedCamera{{Name: "front", Zones: []string{zone}}}}))
		waitDelivered(t, c)
	}
	a := balanced(t, c)
	assert.Zero(t, a.State.Dropped)
	assert.Less(t, len(c.slots), slotLimit)
	assert.Len(t, c.order, len(c.slots))
	assert.Empty(t, c.feeds)
}

func TestHomeAssistantRemovesComponents(t *testing.T) {
	m := startMosquitto(t, "allow_anonymous true")
	c := testClient("tcp://" + m.address)
	c.DiscoveryPrefix, c.Controller = "homeassistant", &recorder{}
	start(t, c)
	const topic = "homeassistant/device/edge-infer-gate/config"
	bundle := func() map[string]map[string]any {
		waitDelivered(t, c)
		sub := subscribe(t, "tcp://"+m.address, topic)
		require.Eventually(t, func() bool { return sub.last(topic) != "" }, patience, time.Millisecond)
		require.NoError(t, validate(t, schemas(t)["discovery"], sub.last(topic)))
		var got discovered
		require.NoError(t, json.Unmarshal([]byte(sub.last(topic)), &got))
		return got.Components
	}
	announce := func(cameras ...AnnouncedCamera) {
		require.NoError(t, c.Announce(&Announcement{Cameras: cameras, Temperatures: []string{"tj"}}))
	}
	announce(frontCamera, backCamera)
	all := bundle()
	require.Greater(t, len(all["back_zone_yard"]), 1)

	m.stop() // both bundles without the camera wait; the newer one alone is sent
	require.Eventually(t, func() bool { return !c.Connection().Connected }, patience, time.Millisecond)
	announce(frontCamera)
	announce(frontCamera)
	m.start()
	removed := bundle()
	require.Len(t, removed, len(all))
	platforms := map[any]int{}
	for key, component := range removed {
		if len(component) > 1 {
			assert.Equal(t, all[key], component)
			continue
		}
		assert.Equal(t, all[key]["platform"], component["platform"])
		platforms[component["platform"]]++
	}
	assert.Equal(t, map[any]int{"binary_sensor": 2, "sensor": 9, "image": 2, "switch": 1, "number": 2, "text": 1, "button": 1}, platforms)

	announce(frontCamera)
	left := bundle()
	assert.Len(t, left, len(all)-18)
	assert.NotContains(t, left, "back_state")

	announce(frontCamera, backCamera)
	assert.Equal(t, all, bundle(), "what comes back is whole again")
}

func TestForgetStillKnowsWhatAnEarlierProcessLeft(t *testing.T) {
	m := startMosquitto(t, "allow_anonymous true")
	earlier := testClient("tcp://" + m.address)
	stop := start(t, earlier)
	left := publishAll(earlier, frontCamera)
	waitDelivered(t, earlier)
	stop()
	c := testClient("tcp://" + m.address)
	stop = start(t, c)
	require.NoError(t, c.Announce(&Announcement{}))
	waitDelivered(t, c)
	require.Equal(t, sorted(left), retained(t, m), "only a client's own values are known to it")
	stop()
	again := testClient("tcp://" + m.address)
	require.NoError(t, again.Open())
	defer again.Close()
	_, err := again.Forget(context.Background())
	require.NoError(t, err)
	require.Empty(t, retained(t, m))
}

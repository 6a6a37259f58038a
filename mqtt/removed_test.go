package mqtt

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/mqtt/command"
	"github.com/edge-infer/edge-infer/mqtt/homeassistant"
	"github.com/edge-infer/edge-infer/mqtt/mqtttest"
	"github.com/edge-infer/edge-infer/mqtt/topic"
)

// publishAll publishes on every retained topic of each camera, and says which those are.
func publishAll(c *Client, cameras ...homeassistant.Camera) (topics []string) {
	t := topic.Tree{Root: "edge-infer", Device: c.Device}
	for _, camera := range cameras {
		c.Settings(camera.Name, Settings{Detect: true, Threshold: 0.25, Interval: 1})
		for _, control := range []string{command.Detect, command.Threshold, command.Interval, command.Labels} {
			topics = append(topics, t.State(camera.Name, control))
		}
		for _, label := range camera.Labels {
			c.Count(camera.Name, label, 1)
			c.Snapshot(camera.Name, label, []byte("image"))
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
		if len(camera.Labels) > 0 {
			c.Image(camera.Name, []byte("scene"))
			c.RequestedSnapshot(camera.Name, []byte("whole"))
			topics = append(topics, t.Image(camera.Name), t.RequestedSnapshot(camera.Name))
		}
		for _, line := range camera.Lines {
			c.Line(camera.Name, line, 1, 2)
			topics = append(topics, t.Line(camera.Name, line))
		}
	}
	return topics
}

// retained are the topics below the device that a new subscriber gets values of, without the device's own.
func retained(t *testing.T, m *mqtttest.Mosquitto) (topics []string) {
	t.Helper()
	// The broker sends what it retains in the order of its tree; a message that is published afterwards comes behind all of them.
	sub := mqtttest.Subscribe(t, "tcp://"+m.Address, "edge-infer/#", "last")
	m.Publish("last", "message")
	sub.WaitLast(t, "last", "message")
	for _, got := range sub.All() {
		if got.Retained && got.Topic != "edge-infer/gate/available" {
			topics = append(topics, got.Topic)
		}
	}
	slices.Sort(topics)
	return topics
}

// startLasting runs a mosquitto that keeps what it retains when it is stopped and started again.
func startLasting(t *testing.T) *mqtttest.Mosquitto {
	t.Helper()
	return mqtttest.StartMosquitto(t, "allow_anonymous true", "persistence true", "persistence_location "+t.TempDir()+"/")
}

func sorted(topics []string) []string { return slices.Sorted(slices.Values(topics)) }

func waitDelivered(t *testing.T, c *Client) {
	t.Helper()
	waitConnected(t, c)
	require.Eventually(t, func() bool { return c.Accounting().State.Queued == 0 }, mqtttest.Patience, time.Millisecond)
}

var (
	frontCamera = homeassistant.Camera{
		Name: "front", Labels: []string{"all", "person"}, Zones: []string{"yard", "drive"}, Lines: []string{"door"},
	}
	backCamera = homeassistant.Camera{Name: "back", Labels: []string{"all", "dog"}, Zones: []string{"yard"}, Lines: []string{"door"}}
)

func TestWhatIsNotAnnouncedAnyMoreIsCleared(t *testing.T) {
	withoutZone, withoutLine := frontCamera, frontCamera
	withoutZone.Zones, withoutLine.Lines = []string{"drive"}, nil
	renamed := backCamera
	renamed.Name = "rear"
	for _, test := range []struct {
		name  string
		after []homeassistant.Camera
	}{
		{"nothing changes", []homeassistant.Camera{frontCamera, backCamera}},
		{"a camera goes", []homeassistant.Camera{frontCamera}},
		{"a camera gets another name", []homeassistant.Camera{frontCamera, renamed}},
		{"a zone goes", []homeassistant.Camera{withoutZone, backCamera}},
		{"a line goes", []homeassistant.Camera{withoutLine, backCamera}},
		{"everything goes", nil},
	} {
		for _, away := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, broker away %v", test.name, away), func(t *testing.T) {
				mqtttest.NoLeaks(t)
				m := startLasting(t)
				c := testClient("tcp://" + m.Address)
				start(t, c)
				before := publishAll(c, frontCamera, backCamera)
				require.NoError(t, c.Announce(&homeassistant.Announcement{Cameras: []homeassistant.Camera{frontCamera, backCamera}}))
				waitDelivered(t, c)
				require.Equal(t, sorted(before), retained(t, m))
				if away {
					m.Stop()
					require.Eventually(t, func() bool { return !c.Connection().Connected }, mqtttest.Patience, time.Millisecond)
				}
				after := publishAll(c, test.after...)
				require.NoError(t, c.Announce(&homeassistant.Announcement{Cameras: test.after}))
				if away {
					m.Start()
				}
				waitDelivered(t, c)
				assert.Equal(t, sorted(after), retained(t, m))
				balanced(t, c)
			})
		}
	}
}

func TestAClearedTopicTakesValuesAgain(t *testing.T) {
	m := mqtttest.StartMosquitto(t, "allow_anonymous true")
	c := testClient("tcp://" + m.Address)
	start(t, c)
	both := &homeassistant.Announcement{Cameras: []homeassistant.Camera{frontCamera, backCamera}}
	publishAll(c, both.Cameras...)
	require.NoError(t, c.Announce(&homeassistant.Announcement{Cameras: both.Cameras[:1]}))
	waitDelivered(t, c)
	offered := c.Accounting().State.Offered
	require.NoError(t, c.Announce(&homeassistant.Announcement{Cameras: both.Cameras[:1]}))
	assert.Equal(t, offered, c.Accounting().State.Offered, "nothing is cleared twice")
	again := publishAll(c, both.Cameras...)
	require.NoError(t, c.Announce(both))
	waitDelivered(t, c)
	assert.Equal(t, sorted(again), retained(t, m))
	require.NoError(t, c.Announce(&homeassistant.Announcement{}))
	waitDelivered(t, c)
	assert.Empty(t, retained(t, m))
}

// TestEveryBrokerIsCleared has the second broker of the list hold values from a time when the first was away.
func TestEveryBrokerIsCleared(t *testing.T) {
	first, second := startLasting(t), startLasting(t)
	first.Stop()
	c := testClient("tcp://"+first.Address, "tcp://"+second.Address)
	start(t, c)
	all := publishAll(c, frontCamera, backCamera)
	waitDelivered(t, c)
	require.Equal(t, sorted(all), retained(t, second))
	first.Start()
	second.Stop()
	require.Eventually(t, func() bool { return c.Connection().Broker == "tcp://"+first.Address }, mqtttest.Patience, time.Millisecond)
	waitDelivered(t, c)
	require.Eventually(t, func() bool { return len(retained(t, first)) == len(all) }, mqtttest.Patience, 10*time.Millisecond)
	require.NoError(t, c.Announce(&homeassistant.Announcement{Cameras: []homeassistant.Camera{backCamera}}))
	waitDelivered(t, c)
	second.Start()
	first.Stop()
	require.Eventually(t, func() bool { return c.Connection().Broker == "tcp://"+second.Address }, mqtttest.Patience, time.Millisecond)
	want := sorted(publishAll(c, backCamera))
	require.Eventually(t, func() bool { return slices.Equal(want, retained(t, second)) }, mqtttest.Patience, 10*time.Millisecond)
}

// TestSimilarNames has two cameras whose names differ in what a topic level must not contain.
func TestSimilarNames(t *testing.T) {
	broker := startBroker(t, "")
	sub := mqtttest.Subscribe(t, broker.URL(), "edge-infer/#")
	c := testClient(broker.URL())
	start(t, c)
	c.Count("a/b", "dog", 1)
	c.Count("a_b", "dog", 2)
	c.Count("a/b", "cat", 3)
	waitDelivered(t, c)
	require.NoError(t, c.Announce(&homeassistant.Announcement{Cameras: []homeassistant.Camera{{Name: "a_b"}}}))
	waitDelivered(t, c)
	c.Count("a_b", "end", 1)
	sub.WaitLast(t, "edge-infer/gate/a_b/count/end", "1")
	assert.Equal(t, "2", sub.Last("edge-infer/gate/a_b/count/dog"))
	assert.Empty(t, sub.Messages("edge-infer/gate/a_b/count/cat"))
	// The client may also hear from the broker that a topic is retained, and clear it once more.
	assert.Equal(t, []string{"1", ""}, slices.Compact(sub.Messages("edge-infer/gate/a%2Fb/count/dog")))
	assert.Equal(t, []string{"3", ""}, slices.Compact(sub.Messages("edge-infer/gate/a%2Fb/count/cat")))
}

func TestACommandThatOutlastsItsCameraPublishesNothing(t *testing.T) {
	c := testClient("tcp://127.0.0.1:1")
	c.Controller = &recorder{}
	require.NoError(t, c.Open())
	defer c.Close()
	c.Settings("front", Settings{})
	require.NoError(t, c.Announce(&homeassistant.Announcement{}))
	offered := c.Accounting().State.Offered
	require.NoError(t, c.Execute(command.Command{Camera: "front", Control: command.Threshold, Threshold: 0.5}))
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
	for i := range 3 * topicLimit / 2000 {
		zone := fmt.Sprint("zone", i)
		for label := range 1000 {
			c.Zone("front", zone, fmt.Sprint(label), 1)
		}
		send(c, frame("camera"+zone, 1))
		require.NoError(t, c.Announce(&homeassistant.Announcement{Cameras: []homeassistant.Camera{{Name: "front", Zones: []string{zone}}}}))
		waitDelivered(t, c)
	}
	a := balanced(t, c)
	assert.Zero(t, a.State.Dropped)
	assert.Less(t, len(c.mailboxes), topicLimit)
	assert.Len(t, c.order, len(c.mailboxes))
	assert.Empty(t, c.feeds)
}

package mqtt

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/mqtt/command"
	"github.com/edge-infer/edge-infer/mqtt/homeassistant"
	"github.com/edge-infer/edge-infer/mqtt/mqtttest"
)

func TestRemoteSettingsOutlastTheProcess(t *testing.T) {
	broker := startBroker(t, "")
	sub := mqtttest.Subscribe(t, broker.URL(), "edge-infer/#")
	directory := t.TempDir()
	configured := Settings{Detect: true, Threshold: 0.25, Interval: 1, Labels: []string{"person"}}
	run := func() (*Client, func() time.Duration) {
		c := testClient(broker.URL())
		c.Spool.Directory, c.Controller = directory, &recorder{}
		stop := start(t, c)
		for _, camera := range []string{"front", "back"} {
			c.Settings(camera, configured)
		}
		waitDelivered(t, c)
		return c, stop
	}
	_, stop := run()
	for _, sent := range []struct{ topic, payload, state string }{
		{"front/detect", "OFF", "OFF"},
		{"front/threshold", "0.7", "0.7"},
		{"front/labels", "*", "*"},
		{"back/interval", "9", "9"},
		{"back/labels", "a,b", "a,b"},
	} {
		require.Eventually(t, func() bool { // until the subscription is there
			sub.Client.Publish("edge-infer/gate/"+sent.topic+"/set", 1, false, sent.payload).WaitTimeout(mqtttest.Patience)
			return sub.Last("edge-infer/gate/"+sent.topic+"/state") == sent.state
		}, mqtttest.Patience, 20*time.Millisecond)
	}
	stop()

	c, stop := run()
	for camera, want := range map[string]string{
		"front": `{"detect":false,"threshold":0.7,"labels":[]}`, "back": `{"interval":9,"labels":["a","b"]}`,
	} {
		kept, err := json.Marshal(c.Remote(camera))
		require.NoError(t, err)
		assert.JSONEq(t, want, string(kept))
	}
	c.ForgetRemote("front", command.Threshold)
	assert.Nil(t, c.Remote("front").Threshold)
	assert.False(t, *c.Remote("front").Detect)
	c.ForgetRemote("front", command.Detect, command.Labels)
	assert.Equal(t, command.Kept{}, c.Remote("front"))
	c.ForgetRemote("front")
	require.NoError(t, c.Announce(&homeassistant.Announcement{Cameras: []homeassistant.Camera{{Name: "front"}}})) // back is gone
	stop()
	c, _ = run()
	assert.Equal(t, command.Kept{}, c.Remote("front"))
	assert.Equal(t, command.Kept{}, c.Remote("back"))
}

func TestRemoteSettingsThatCannotBeRead(t *testing.T) {
	for _, text := range []string{"null", "nonsense", `{"front":{"threshold":7}}`, `{"front":{"interval":0}}`, `[]`} {
		directory := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(directory, remoteName), []byte(text), 0o600))
		log := &mqtttest.Journal{}
		c := testClient("tcp://127.0.0.1:1")
		c.Spool.Directory, c.Logger, c.Controller = directory, log.Logger(), &recorder{}
		require.NoError(t, c.Open())
		assert.Equal(t, command.Kept{}, c.Remote("front"), text)
		assert.Equal(t, text != "null", strings.Contains(log.String(), "remote settings of an earlier run cannot be read"), text)
		require.NoError(t, c.Execute(command.Command{Camera: "front", Control: command.Detect}))
		assert.False(t, *c.Remote("front").Detect)
		require.NoError(t, c.Close())
	}
}

// TestRemoteSettingsWithoutADisk keeps them for the process.
func TestRemoteSettingsWithoutADisk(t *testing.T) {
	c := testClient("tcp://127.0.0.1:1")
	c.Controller = &recorder{}
	require.NoError(t, c.Open())
	defer c.Close()
	require.NoError(t, c.Execute(command.Command{Camera: "front", Control: command.Threshold, Threshold: 0.5}))
	assert.InDelta(t, 0.5, *c.Remote("front").Threshold, 0)
}

package homeassistant

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sensors are the names and templates of a camera's sensors that read its detections.
func sensors(t *testing.T, a *Announcement) map[string]map[string]any {
	t.Helper()
	found, _ := messages(t, discovery(), a, nil)
	all := map[string]map[string]any{}
	for _, component := range found["homeassistant/device/edge-infer-gate_7-b6af4f65/camera-yard/config"].Components {
		if component["state_topic"] == "edge-infer/gate 7/yard/detections" {
			all[component["name"].(string)] = component
		}
	}
	return all
}

func TestSharesOfClasses(t *testing.T) {
	camera := Camera{Name: "yard", Classes: []string{"road", "grass", "sky", "person", "wall"}, Zones: []string{"drive way"}}
	found := sensors(t, &Announcement{Cameras: []Camera{camera}})
	require.Len(t, found, shownClasses)
	person := found["Drive way person share"]
	require.NotNil(t, person, "people matter most")
	assert.Equal(t, "%", person["unit_of_measurement"])
	assert.Equal(t, `{{ ((value_json.semantic.zones["drive way"].classes | selectattr("label", "eq", "person") | map(attribute="share") | sum) * 100) `+
		`| round(0) | int }}`, person["value_template"])
	camera.Zones = nil
	found = sensors(t, &Announcement{Cameras: []Camera{camera}, Labels: []string{"sky", "wall"}})
	require.Len(t, found, 2)
	assert.Equal(t, `{{ ((value_json.semantic.classes | selectattr("label", "eq", "sky") | map(attribute="share") | sum) * 100) | round(0) | int }}`,
		found["Sky share"]["value_template"])
	require.Len(t, sensors(t, &Announcement{Cameras: []Camera{camera}, Labels: []string{everyLabel}}), 5)
}

func TestDepthOfZones(t *testing.T) {
	camera := Camera{Name: "yard", DepthUnit: "m", Zones: []string{"gate", "path"}}
	found := sensors(t, &Announcement{Cameras: []Camera{camera}})
	require.Len(t, found, 2)
	gate := found["Gate depth"]
	assert.Equal(t, "distance", gate["device_class"])
	assert.Equal(t, `{{ value_json.depth.zones["gate"].median | round(1) if value_json.depth.zones["gate"].median is not none else none }}`,
		gate["value_template"])
	camera.DepthUnit, camera.Zones = "relative", nil
	found = sensors(t, &Announcement{Cameras: []Camera{camera}})
	assert.NotContains(t, found["Depth"], "unit_of_measurement")
}

package homeassistant

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheClassOfTheImage(t *testing.T) {
	camera := Camera{Name: "yard", Classifier: true, Classes: []string{"open", "shut", "open"}}
	class := sensors(t, &Announcement{Cameras: []Camera{camera}})["Class"]
	require.NotNil(t, class)
	assert.Equal(t, "enum", class["device_class"])
	assert.Equal(t, []any{"open", "shut"}, class["options"])
	assert.Equal(t, class["state_topic"], class["json_attributes_topic"])
	assert.Equal(t, "{{ value_json.detections[0].label[:255] if value_json.detections else none }}", class["value_template"])
	assert.Equal(t, "{{ dict(score=value_json.detections[0].score | round(1) if value_json.detections else none) | tojson }}",
		class["json_attributes_template"])
}

// TestManyClassesAreText: the list of a thousand classes is not told.
func TestManyClassesAreText(t *testing.T) {
	many := make([]string, 1000)
	for i := range many {
		many[i] = fmt.Sprint("class of things number ", i)
	}
	for name, labels := range map[string][]string{
		"none": nil, "many": many, "long": {strings.Repeat("x", maxOptionBytes), "y"}, "without a name": {"open", ""},
	} {
		camera := Camera{Name: "yard", Classifier: true, Classes: labels}
		class := sensors(t, &Announcement{Cameras: []Camera{camera}})["Class"]
		require.NotNil(t, class, name)
		assert.NotContains(t, class, "options", name)
		assert.NotContains(t, class, "device_class", name)
		made, _, err := discovery().Messages(&Announcement{Cameras: []Camera{camera}}, nil)
		require.NoError(t, err)
		for _, m := range made {
			assert.Less(t, len(m.Payload), 8192, name)
		}
	}
}

package payload

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestDeprecatedFields: subscribers get renamed fields under both names, with the same values.
func TestDeprecatedFields(t *testing.T) {
	camera := CameraStats{Name: "gate", DroppedNewer: 2.5, DroppedMotion: 1.5, DeadlineMissed: 7}
	var fields map[string]map[string]any
	require.NoError(t, json.Unmarshal(append(camera.appendJSON([]byte{'{'}), '}'), &fields))
	for name, old := range map[string]string{
		"fps_dropped_newer": "fps_displaced", "fps_dropped_motion": "fps_gated", "deadline_missed": "late",
	} {
		assert.NotZero(t, fields["gate"][name], name)
		assert.Equal(t, fields["gate"][name], fields["gate"][old], name)
	}
}

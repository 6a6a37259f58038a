package diagnose

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture/source"
)

// TestSensorsAreNamedByTheirAddress: doctor and devices name the address of a CSI sensor, whose device gives raw Bayer images.
func TestSensorsAreNamedByTheirAddress(t *testing.T) {
	bayer := []source.DeviceFormat{{Code: "RG10", Width: 3280, Height: 2464}}
	found := []source.DeviceInfo{
		{Path: "/dev/video0", Name: "vi-output, imx219 9-0010", Captures: true, Formats: bayer},
		{Path: "/dev/video1", Name: "C920", Captures: true, Formats: []source.DeviceFormat{{Code: "YUYV"}}},
		{Path: "/dev/video2", Name: "vi-output, imx477 10-001a", Captures: true, Formats: bayer},
	}
	var text strings.Builder
	require.NoError(t, (&Devices{Cameras: found}).Print(&text))
	assert.Contains(t, text.String(), "/dev/video0 vi-output, imx219 9-0010: this is a CSI sensor with raw Bayer images: use csi://0\n")
	assert.Contains(t, text.String(), "/dev/video2 vi-output, imx477 10-001a: this is a CSI sensor with raw Bayer images: use csi://1\n")

	d := bareMachine(t)
	d.Devices = func() []source.DeviceInfo { return found }
	checks := d.devices()
	require.Len(t, checks, 3)
	assert.Equal(t, warn("video device", "this is a CSI sensor with raw Bayer images: use csi://1",
		"/dev/video2 vi-output, imx477 10-001a: RG10 up to 3280x2464"), checks[2])
}

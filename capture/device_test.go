package capture

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestDevices(t *testing.T) {
	dev, sysfs := t.TempDir(), t.TempDir()
	for _, name := range []string{"video10", "video2", "video1", "video0", "videodev", "audio0"} {
		require.NoError(t, os.WriteFile(filepath.Join(dev, name), nil, 0o600))
	}
	require.NoError(t, os.Mkdir(filepath.Join(sysfs, "video2"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(sysfs, "video2", "name"), []byte("C920: HD Pro\n"), 0o600))
	answer := func(card string, all, node uint32) []byte {
		data := make([]byte, capabilitySize)
		copy(data[cardOffset:], card)
		binary.NativeEndian.PutUint32(data[capsOffset:], all)
		binary.NativeEndian.PutUint32(data[deviceCapsOffset:], node)
		return data
	}
	found := devices(dev, sysfs, func(path string) ([]byte, error) {
		switch filepath.Base(path) {
		case "video0":
			return answer("old driver", capVideoCapture, 0), nil
		case "video1":
			return nil, &os.PathError{Op: "open", Path: path, Err: unix.EACCES}
		case "video2":
			return answer("C920", capVideoCapture|capDeviceCaps, capVideoCaptureMplane), nil
		}
		return answer("metadata", capVideoCapture|capDeviceCaps, 0x00800000), nil
	})
	assert.Equal(t, []DeviceInfo{
		{Path: dev + "/video0", Name: "old driver", Captures: true},
		{Path: dev + "/video1", Captures: true, Error: "permission denied"},
		{Path: dev + "/video2", Name: "C920: HD Pro", Captures: true},
		{Path: dev + "/video10", Name: "metadata", Captures: false},
	}, found)
	assert.Equal(t, "there is "+dev+"/video0 old driver, "+dev+"/video1, "+dev+"/video2 C920: HD Pro; without a camera, use --camera demo", deviceHint(found))
	assert.Equal(t, "there is no /dev/video* that captures; without a camera, use --camera demo", deviceHint(nil))
	assert.Equal(t, uintptr(0x80685600), uintptr(queryCapability), "VIDIOC_QUERYCAP")
}

func TestDeviceThatIsNoCamera(t *testing.T) {
	_, err := queryCapabilities("/dev/null")
	require.ErrorIs(t, err, unix.ENOTTY)
	path := filepath.Join(t.TempDir(), "video0")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	source, err := Open(t.Context(), "v4l2://"+path, Options{})
	require.Nil(t, source)
	require.ErrorIs(t, err, ErrUnavailable)
	assert.Contains(t, err.Error(), "V4L2 cannot open it (see which process has it open")
}

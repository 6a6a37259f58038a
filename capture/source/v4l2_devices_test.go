package source

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/edge-infer/edge-infer/capture"
)

func TestDevices(t *testing.T) {
	dev, sysfs := t.TempDir(), t.TempDir()
	for _, name := range []string{"video10", "video2", "video1", "video0", "videodev", "audio0"} {
		require.NoError(t, os.WriteFile(filepath.Join(dev, name), nil, 0o600))
	}
	require.NoError(t, os.Mkdir(filepath.Join(sysfs, "video2"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(sysfs, "video2", "name"), []byte("C920: HD Pro\n"), 0o600))
	answer := func(card string, all, node uint32) capabilityReply {
		data := make([]byte, capabilitySize)
		copy(data[cardOffset:], card)
		binary.NativeEndian.PutUint32(data[capsOffset:], all)
		binary.NativeEndian.PutUint32(data[deviceCapsOffset:], node)
		return capabilityReply{capabilities: data, formats: []DeviceFormat{{Code: "YUYV", Width: 640, Height: 480}}}
	}
	found := devices(dev, sysfs, func(path string) (capabilityReply, error) {
		switch filepath.Base(path) {
		case "video0":
			return answer("old driver", capVideoCapture, 0), nil
		case "video1":
			return capabilityReply{}, &os.PathError{Op: "open", Path: path, Err: unix.EACCES}
		case "video2":
			return answer("C920", capVideoCapture|capDeviceCaps, capVideoCaptureMplane), nil
		}
		return answer("metadata", capVideoCapture|capDeviceCaps, 0x00800000), nil
	})
	formats := []DeviceFormat{{Code: "YUYV", Width: 640, Height: 480}}
	assert.Equal(t, []DeviceInfo{
		{Path: dev + "/video0", Name: "old driver", Captures: true, Formats: formats},
		{Path: dev + "/video1", Captures: true, Error: "permission denied"},
		{Path: dev + "/video2", Name: "C920: HD Pro", Captures: true, Formats: formats},
		{Path: dev + "/video10", Name: "metadata", Captures: false, Formats: formats},
	}, found)
	hint := "there is " + dev + "/video0 old driver, " + dev + "/video1, " + dev + "/video2 C920: HD Pro; without a camera, use --camera demo"
	assert.Equal(t, hint, deviceHint(found))
	assert.Equal(t, "there is no /dev/video* that captures; without a camera, use --camera demo", deviceHint(nil))
	assert.Equal(t, uintptr(0x80685600), uintptr(queryCapability), "VIDIOC_QUERYCAP")
}

// TestSensor: a CSI sensor is not opened as a camera, and the hint names the address that opens it.
func TestSensor(t *testing.T) {
	formats := func(codes ...string) (all []DeviceFormat) {
		for _, code := range codes {
			all = append(all, DeviceFormat{Code: code})
		}
		return all
	}
	imx219 := DeviceInfo{Path: "/dev/video0", Name: "vi-output, imx219 9-0010", Captures: true, Formats: formats("RG10", "RGGB", "BA12")}
	webcam := DeviceInfo{Path: "/dev/video1", Name: "C920", Captures: true, Formats: formats("YUYV", "MJPG")}
	both := DeviceInfo{Path: "/dev/video2", Captures: true, Formats: formats("RG10", "NV12")}
	unknown := DeviceInfo{Path: "/dev/video3", Captures: true}
	for device, want := range map[*DeviceInfo]bool{&imx219: true, &webcam: false, &both: false, &unknown: false} {
		assert.Equal(t, want, device.Sensor(), device.Path)
	}
	closed := DeviceInfo{Path: "/dev/video4", Name: "vi-output, imx477 10-001a", Error: "permission denied"}
	second := DeviceInfo{Path: "/dev/video5", Captures: true, Formats: formats("RG12")}
	all := []DeviceInfo{imx219, webcam, closed, second}
	const hint = "this is a CSI sensor with raw Bayer images: use "
	assert.Equal(t, hint+"csi://0", openHint("/dev/video0", all))
	assert.Equal(t, hint+"csi://2", openHint("/dev/video5", all))
	assert.Equal(t, map[string]string{"/dev/video0": "csi://0", "/dev/video4": "csi://1", "/dev/video5": "csi://2"}, CSI(all))
	assert.Contains(t, openHint("/dev/video1", all), "fuser -v /dev/video1")
}

func TestDeviceFormats(t *testing.T) {
	assert.Equal(t, uintptr(0xc0405602), uintptr(enumerateFormats), "VIDIOC_ENUM_FMT")
	assert.Equal(t, uintptr(0xc02c564a), uintptr(enumerateImages), "VIDIOC_ENUM_FRAMESIZES")
	put := func(data []byte, values ...uint32) {
		for i, value := range values {
			binary.NativeEndian.PutUint32(data[4*i:], value)
		}
	}
	codes := []string{"YUYV", "MJPG", "\x00\xffH4"}
	driver := func(request uintptr, data []byte) error {
		index, second := binary.NativeEndian.Uint32(data), string(data[4:8])
		switch {
		case request == enumerateFormats && binary.NativeEndian.Uint32(data[4:]) == streamCapture && int(index) < len(codes):
			copy(data[formatCodeOffset:], codes[index])
			return nil
		case request == enumerateImages && second == "YUYV" && index < 3:
			put(data[8:], discreteImage, []uint32{640, 1280, 320}[index], []uint32{480, 720, 240}[index])
			return nil
		case request == enumerateImages && second == "MJPG" && index == 0:
			put(data[8:], 3, 16, 1920, 2, 16, 1080, 2)
			return nil
		}
		return unix.EINVAL
	}
	assert.Equal(t, []DeviceFormat{{"YUYV", 1280, 720}, {"MJPG", 1920, 1080}, {"H4", 0, 0}}, deviceFormats(driver))
	endless := deviceFormats(func(uintptr, []byte) error { return nil })
	assert.Len(t, endless, 2*maxEntries)
}

func TestDeviceWithoutCapture(t *testing.T) {
	_, err := queryDevice("/dev/null")
	require.ErrorIs(t, err, unix.ENOTTY)
	path := filepath.Join(t.TempDir(), "video0")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	source, err := Open(t.Context(), "v4l2://"+path, capture.Options{})
	require.Nil(t, source)
	require.ErrorIs(t, err, capture.ErrUnavailable)
	assert.Contains(t, err.Error(), "V4L2 cannot open it (see which process has it open")
}

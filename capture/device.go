package capture

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"gocv.io/x/gocv"
	"golang.org/x/sys/unix"
)

// DeviceInfo is one V4L2 device of this machine.
type DeviceInfo struct {
	Path string `json:"path"` // /dev/video0
	Name string `json:"name"` // as the driver tells it; "" when sysfs is silent
	// Captures reports whether the device gives pictures; a camera often has a second node for metadata. It is true when the device
	// cannot be asked, and Error says why not.
	Captures bool   `json:"captures"`
	Error    string `json:"error,omitempty"`
}

// Devices lists /dev/video*, in the order of their numbers.
func Devices() []DeviceInfo { return devices("/dev", "/sys/class/video4linux", queryCapabilities) }

func devices(dev, sysfs string, query func(path string) ([]byte, error)) []DeviceInfo {
	paths, _ := filepath.Glob(filepath.Join(dev, "video[0-9]*"))
	slices.SortFunc(paths, func(a, b string) int { return deviceNumber(a) - deviceNumber(b) })
	found := make([]DeviceInfo, 0, len(paths))
	for _, path := range paths {
		if deviceNumber(path) < 0 {
			continue
		}
		info := DeviceInfo{Path: path, Captures: true}
		if name, err := os.ReadFile(filepath.Join(sysfs, filepath.Base(path), "name")); err == nil {
			info.Name = strings.TrimSpace(string(name))
		}
		answer, err := query(path)
		if err != nil {
			info.Error = cause(err).Error()
		} else {
			info.read(answer)
		}
		found = append(found, info)
	}
	return found
}

func deviceNumber(path string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(path), "video"))
	if err != nil {
		return -1
	}
	return n
}

// struct v4l2_capability and VIDIOC_QUERYCAP of linux/videodev2.h: driver[16], card[32], bus_info[32], version, capabilities, device_caps,
// reserved[3].
const (
	capabilitySize   = 104
	cardOffset       = 16
	busOffset        = 48
	capsOffset       = 84
	deviceCapsOffset = 88
	queryCapability  = 2<<30 | capabilitySize<<16 | 'V'<<8 // _IOR('V', 0, struct v4l2_capability)

	capVideoCapture       = 0x00000001
	capVideoCaptureMplane = 0x00001000
	capDeviceCaps         = 0x80000000 // device_caps is filled in
)

func queryCapabilities(path string) ([]byte, error) {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	var answer [capabilitySize]byte
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), queryCapability, uintptr(unsafe.Pointer(&answer[0]))); errno != 0 {
		return nil, errno
	}
	return answer[:], nil
}

// read takes over what the driver answered.
func (d *DeviceInfo) read(answer []byte) {
	if len(answer) != capabilitySize {
		return
	}
	if card, _, _ := bytes.Cut(answer[cardOffset:busOffset], []byte{0}); d.Name == "" {
		d.Name = string(card)
	}
	caps := binary.NativeEndian.Uint32(answer[capsOffset:])
	if caps&capDeviceCaps != 0 {
		caps = binary.NativeEndian.Uint32(answer[deviceCapsOffset:])
	}
	d.Captures = caps&(capVideoCapture|capVideoCaptureMplane) != 0
}

// openDevice opens a V4L2 camera.
func openDevice(u URI, options Options) (Source, error) {
	if err := checkDevice(u); err != nil {
		return nil, err
	}
	v, err := openVideo(u, u.Address, gocv.VideoCaptureV4L2, options)
	if err != nil {
		return nil, withHint(err, "see which process has it open: fuser -v "+u.Address+"; a camera has nodes that give no picture, "+deviceHint(Devices()))
	}
	v.configure()
	return v, nil
}

// checkDevice says in words of V4L2 what OpenCV would only call a failure.
func checkDevice(u URI) error {
	file, err := os.OpenFile(u.Address, os.O_RDWR|unix.O_NONBLOCK, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return u.fail("open", ErrNotFound, "no such camera", deviceHint(Devices()), nil)
	case errors.Is(err, fs.ErrPermission):
		return u.fail("open", ErrUnavailable, "", "add the user to the group 'video'", cause(err))
	case err != nil:
		return u.fail("open", ErrUnavailable, "", deviceHint(Devices()), cause(err))
	}
	return file.Close()
}

// deviceHint names the cameras that there are.
func deviceHint(all []DeviceInfo) string {
	var names []string
	for _, device := range all {
		if device.Captures {
			names = append(names, strings.TrimSpace(device.Path+" "+device.Name))
		}
	}
	if len(names) == 0 {
		return "there is no /dev/video* that captures; without a camera, use --camera demo"
	}
	return fmt.Sprintf("there is %s; without a camera, use --camera demo", strings.Join(names, ", "))
}

// configure asks the driver for what the URI wants. The driver takes the nearest mode that it has.
func (v *video) configure() {
	set := v.capture.Set
	switch v.uri.Encoding {
	case "yuyv":
		set(gocv.VideoCaptureFOURCC, v.capture.ToCodec("YUYV"))
		// The letterbox reads YUYV, so OpenCV need not convert.
		set(gocv.VideoCaptureConvertRGB, 0)
		v.decoder.picture = func(f form) (PixelFormat, int, int, error) {
			if f.pixel == gocv.MatTypeCV8UC2 {
				return YUYV, f.columns, f.rows, nil
			}
			return 0, 0, 0, &Error{Op: "read", Kind: ErrFormat, Message: "the camera does not give YUYV", Hint: "leave out format=yuyv"}
		}
	case "mjpeg":
		set(gocv.VideoCaptureFOURCC, v.capture.ToCodec("MJPG"))
	}
	if v.uri.Width > 0 {
		set(gocv.VideoCaptureFrameWidth, float64(v.uri.Width))
		set(gocv.VideoCaptureFrameHeight, float64(v.uri.Height))
	}
	if v.uri.FPS > 0 {
		set(gocv.VideoCaptureFPS, v.uri.FPS)
	}
	set(gocv.VideoCaptureBufferSize, 2) // the driver's queue; its older pictures would only add delay
	if fps := v.capture.Get(gocv.VideoCaptureFPS); fps > 0 && fps <= maxRate {
		v.fps = fps
	}
}

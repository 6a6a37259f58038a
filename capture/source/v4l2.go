package source

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
	"time"
	"unsafe"

	"gocv.io/x/gocv"
	"golang.org/x/sys/unix"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/engine"
)

// DeviceInfo describes a V4L2 device of this machine.
type DeviceInfo struct {
	Path string `json:"path"` // /dev/video0
	Name string `json:"name"` // from the driver; "" if sysfs has none
	// Captures reports whether the device delivers images; many cameras have a second node for metadata. It is true if the device cannot be
	// queried; Error is then the reason.
	Captures bool `json:"captures"`
	// Formats lists the pixel formats with the largest image of each.
	Formats []DeviceFormat `json:"formats,omitempty"`
	Error   string         `json:"error,omitempty"`
}

// bayer are the formats of a sensor whose images nothing has converted to colours yet, as V4L2 names them. Those with 10 to 16 bits per
// pixel differ in the last two characters: RG10 to RG16.
var bayer = []string{"BA81", "GBRG", "GRBG", "RGGB", "BYR2"}

// Sensor reports whether the device is an image sensor without a signal processor, as a Jetson's CSI cameras are: all of its formats are
// Bayer patterns.
func (d *DeviceInfo) Sensor() bool {
	raw := func(f DeviceFormat) bool {
		if len(f.Code) != 4 || slices.Contains(bayer, f.Code) {
			return slices.Contains(bayer, f.Code)
		}
		colours, bits := f.Code[:2], f.Code[2:]
		return slices.Contains([]string{"BG", "GB", "BA", "RG", "GR"}, colours) && slices.Contains([]string{"10", "12", "14", "16"}, bits)
	}
	return len(d.Formats) > 0 && !slices.ContainsFunc(d.Formats, func(f DeviceFormat) bool { return !raw(f) })
}

// jetsonSensor is how the capture driver of a Jetson names its sensors, as in "vi-output, imx219 9-0010".
const jetsonSensor = "vi-output"

// CSI returns the addresses of the CSI sensors among devices, csi://0 for the first one, by the path of the device. Argus numbers sensors
// in the order in which the driver makes their devices.
func CSI(all []DeviceInfo) map[string]string {
	addresses := map[string]string{}
	for i := range all {
		if all[i].Sensor() || strings.HasPrefix(all[i].Name, jetsonSensor) {
			addresses[all[i].Path] = fmt.Sprintf("csi://%d", len(addresses))
		}
	}
	return addresses
}

// SensorHint is what to use instead of a device that is a Sensor. all are the machine's devices.
func SensorHint(all []DeviceInfo, path string) string {
	return "this is a CSI sensor with raw Bayer images: use " + CSI(all)[path]
}

// DeviceFormat is one pixel format of a V4L2 device.
type DeviceFormat struct {
	Code   string `json:"code"` // V4L2's FourCC: YUYV, MJPG
	Width  int    `json:"width"`
	Height int    `json:"height"`
}

// Devices lists /dev/video* in numerical order.
func Devices() []DeviceInfo { return devices("/dev", "/sys/class/video4linux", queryDevice) }

// capabilityReply is a driver's answer to capability queries.
type capabilityReply struct {
	capabilities []byte // struct v4l2_capability
	formats      []DeviceFormat
}

func devices(dev, sysfs string, query func(path string) (capabilityReply, error)) []DeviceInfo {
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
			info.Error = withoutPath(err).Error()
		} else {
			info.parseCapabilities(answer.capabilities)
			info.Formats = answer.formats
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

func queryDevice(path string) (capabilityReply, error) {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return capabilityReply{}, err
	}
	defer unix.Close(fd)
	ioctl := func(request uintptr, data []byte) error {
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(unsafe.Pointer(&data[0]))); errno != 0 {
			return errno
		}
		return nil
	}
	capabilities := make([]byte, capabilitySize)
	if err := ioctl(queryCapability, capabilities); err != nil {
		return capabilityReply{}, err
	}
	return capabilityReply{capabilities, deviceFormats(ioctl)}, nil
}

// struct v4l2_fmtdesc, VIDIOC_ENUM_FMT, struct v4l2_frmsizeenum and VIDIOC_ENUM_FRAMESIZES of linux/videodev2.h. Sizes are either a list,
// or one range that ends in its greatest width and height.
const (
	formatSize       = 64
	formatCodeOffset = 44
	enumerateFormats = 3<<30 | formatSize<<16 | 'V'<<8 | 2 // _IOWR('V', 2, struct v4l2_fmtdesc)
	imageSize        = 44
	enumerateImages  = 3<<30 | imageSize<<16 | 'V'<<8 | 74 // _IOWR('V', 74, struct v4l2_frmsizeenum)
	discreteImage    = 1

	streamCapture       = 1 // enum v4l2_buf_type
	streamCaptureMplane = 9

	maxEntries = 256 // a driver whose lists do not end is broken
)

// deviceFormats lists the formats, none if the driver does not report them.
func deviceFormats(ioctl func(request uintptr, data []byte) error) []DeviceFormat {
	var formats []DeviceFormat
	for _, stream := range [...]uint32{streamCapture, streamCaptureMplane} {
		for index := range uint32(maxEntries) {
			description := make([]byte, formatSize)
			binary.NativeEndian.PutUint32(description, index)
			binary.NativeEndian.PutUint32(description[4:], stream)
			if ioctl(enumerateFormats, description) != nil {
				break
			}
			code := description[formatCodeOffset : formatCodeOffset+4]
			width, height := largestImage(ioctl, binary.NativeEndian.Uint32(code))
			formats = append(formats, DeviceFormat{Code: formatCode(code), Width: width, Height: height})
		}
	}
	return formats
}

// formatCode returns the printable characters of a FourCC.
func formatCode(code []byte) string {
	return strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' {
			return -1
		}
		return r
	}, string(code))
}

func largestImage(ioctl func(request uintptr, data []byte) error, code uint32) (width, height int) {
	for index := range uint32(maxEntries) {
		size := make([]byte, imageSize)
		binary.NativeEndian.PutUint32(size, index)
		binary.NativeEndian.PutUint32(size[4:], code)
		if ioctl(enumerateImages, size) != nil {
			break
		}
		field := func(offset int) int { return int(binary.NativeEndian.Uint32(size[offset:])) }
		if field(8) != discreteImage {
			return field(16), field(28) // maximum of the range that starts at 12 and 24
		}
		if w, h := field(12), field(16); w*h > width*height {
			width, height = w, h
		}
	}
	return width, height
}

// parseCapabilities takes name and capabilities from a struct v4l2_capability.
func (d *DeviceInfo) parseCapabilities(answer []byte) {
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
func openDevice(u capture.URI, options settings) (capture.Source, error) {
	if err := checkDevice(u); err != nil {
		return nil, err
	}
	v, err := openVideo(u, u.Address, gocv.VideoCaptureV4L2, options)
	if err != nil {
		return nil, withHint(err, openHint(u.Address, Devices()))
	}
	v.configure(options.KeepUnits)
	return v, nil
}

// openHint returns the hint for a device that OpenCV cannot open.
func openHint(path string, all []DeviceInfo) string {
	i := slices.IndexFunc(all, func(d DeviceInfo) bool { return d.Path == path && d.Sensor() })
	if i >= 0 {
		return SensorHint(all, path)
	}
	return "see which process has it open: fuser -v " + path + "; a camera has nodes that give no image, " + deviceHint(all)
}

// checkDevice reports errors that OpenCV would only report as a failure to open.
func checkDevice(u capture.URI) error {
	file, err := os.OpenFile(u.Address, os.O_RDWR|unix.O_NONBLOCK, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return u.NewError("open", capture.ErrNotFound, "no such camera", deviceHint(Devices()), nil)
	case errors.Is(err, fs.ErrPermission):
		return u.NewError("open", capture.ErrUnavailable, "", "add the user to the group 'video'", withoutPath(err))
	case err != nil:
		return u.NewError("open", capture.ErrUnavailable, "", deviceHint(Devices()), withoutPath(err))
	}
	return file.Close()
}

// deviceHint lists the available cameras.
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

// configure requests the URI's mode. The driver selects the nearest one that it supports. keep is Options.KeepUnits.
func (v *video) configure(keep time.Duration) {
	set := v.capture.Set
	switch v.uri.Encoding {
	case "yuyv":
		set(gocv.VideoCaptureFOURCC, v.capture.ToCodec("YUYV"))
		// The letterbox reads YUYV, so OpenCV need not convert.
		set(gocv.VideoCaptureConvertRGB, 0)
		v.decoder.interpret = func(f matLayout) (engine.PixelFormat, size, error) {
			if f.pixel == gocv.MatTypeCV8UC2 {
				return engine.YUYV, size{f.columns, f.rows}, nil
			}
			return 0, size{}, &capture.Error{
				Op: "read", Kind: capture.ErrFormat, Message: "the camera does not give YUYV", Hint: "leave out format=yuyv",
			}
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
	set(gocv.VideoCaptureBufferSize, 2) // the driver's queue; older images would only add delay
	if fps := v.capture.Get(gocv.VideoCaptureFPS); fps > 0 && fps <= capture.MaxRate {
		v.fps = fps
	}
	if code := v.capture.Get(gocv.VideoCaptureFOURCC); code == v.capture.ToCodec("MJPG") || code == v.capture.ToCodec("JPEG") {
		// OpenCV would repeat the previous image for one that it cannot decode, and would decode images of any size.
		set(gocv.VideoCaptureConvertRGB, 0)
		raw := gocv.NewMat()
		v.raw = &raw
		v.compressed.decoder.limit = v.decoder.limit
		v.ring = newImageRing(keep)
	}
}

package doctor

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"gocv.io/x/gocv"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/capture/source"
	"github.com/edge-infer/edge-infer/engine/cuda"
)

// element is one part of GStreamer's pipelines and the plugin files that may hold it.
type element struct {
	name  string
	files []string
}

// pipelineElements are used on every machine, jetsonElements on a Jetson; csiElements are those of them that CSI cameras cannot do without.
var (
	pipelineElements = []element{
		{"appsink", []string{"libgstapp.so"}},
		{"videoconvert", []string{"libgstvideoconvert.so", "libgstvideoconvertscale.so"}},
		{"decodebin", []string{"libgstplayback.so"}},
		{"rtspsrc", []string{"libgstrtsp.so"}},
	}
	jetsonElements = []element{
		{"nvarguscamerasrc", []string{"libgstnvarguscamerasrc.so"}},
		{"nvvidconv", []string{"libgstnvvidconv.so"}},
		{"nvv4l2decoder", []string{"libgstnvvideo4linux2.so"}},
	}
	csiElements = []string{"nvarguscamerasrc", "nvvidconv"}
)

// gstreamer looks for the elements that csi:// and gst: cameras need and that a Jetson decodes streams with.
func (d *Doctor) gstreamer(board *cuda.Jetson) Finding {
	const check = "GStreamer"
	wanted := pipelineElements
	if board != nil {
		wanted = slices.Concat(pipelineElements, jetsonElements)
	}
	var missing []string
	for _, e := range wanted {
		if !slices.ContainsFunc(e.files, func(file string) bool { return source.FindPlugin(file) != "" }) {
			missing = append(missing, e.name)
		}
	}
	csi, pipelines := d.uses(capture.CSI), d.uses(capture.Pipeline)
	if !gocv.VideoRegistry.HasBackend(gocv.VideoCaptureGstreamer) {
		f := ok(check, "this program's OpenCV has none; only csi:// and gst: cameras need it")
		if csi || pipelines {
			f = fail(check, "use a build with GStreamer", "this program's OpenCV has none, and csi:// and gst: cameras need it")
		}
		return f
	}
	if len(missing) == 0 {
		return ok(check, "%d of %d elements", len(wanted), len(wanted))
	}
	text := "without " + strings.Join(missing, ", ")
	const fix = "sudo apt install gstreamer1.0-plugins-base gstreamer1.0-plugins-good"
	switch {
	case csi && slices.ContainsFunc(csiElements, func(name string) bool { return board == nil || slices.Contains(missing, name) }):
		return fail(check, "CSI cameras need a Jetson with nvidia-l4t-gstreamer; in a container, start it with --runtime nvidia", "%s", text)
	case (csi || pipelines) && slices.Contains(missing, "appsink"):
		return fail(check, fix, "%s", text)
	case board != nil:
		return warn(check, fix+" nvidia-l4t-gstreamer; in a container, start it with --runtime nvidia",
			"%s: streams are decoded on the CPU", text)
	}
	return ok(check, "%s; only csi:// and gst: cameras need them", text)
}

// uses reports whether the configuration names a camera of that kind.
func (d *Doctor) uses(kind capture.Kind) bool {
	for _, c := range d.Config.Cameras {
		if u, err := capture.ParseURI(c.URI); err == nil && u.Kind == kind {
			return true
		}
	}
	return false
}

// devices lists the V4L2 devices. One that cannot be opened is a failure when it is to be used.
func (d *Doctor) devices() []Finding {
	var used []string
	for _, c := range d.Config.Cameras {
		if u, err := capture.ParseURI(c.URI); err == nil && u.Kind == capture.Device {
			used = append(used, u.Address)
		}
	}
	var found []Finding
	for _, device := range d.Devices() {
		switch {
		case device.Error != "":
			found = append(found, worse(slices.Contains(used, device.Path),
				warn("video device", permissionFix(device.Error), "%s: %s", strings.TrimSpace(device.Path+" "+device.Name), device.Error)))
		case device.Captures:
			found = append(found, ok("video device", "%s: %s", strings.TrimSpace(device.Path+" "+device.Name), formats(device.Formats)))
		}
	}
	if len(found) == 0 {
		return []Finding{ok("video device", "none; streams, files and demo need none")}
	}
	return found
}

func permissionFix(reason string) string {
	switch {
	case strings.Contains(reason, "permission denied"):
		return "sudo usermod -aG video $USER, then log in again; a container needs --device and the group"
	case strings.Contains(reason, "busy"):
		return "end the program that has it open: fuser -v /dev/video*"
	}
	return "plug the camera in again, and see dmesg"
}

func formats(all []source.DeviceFormat) string {
	if len(all) == 0 {
		return "formats unknown"
	}
	var list []string
	for _, f := range all {
		text := f.Code
		if f.Width > 0 {
			text += fmt.Sprintf(" up to %dx%d", f.Width, f.Height)
		}
		if !slices.Contains(list, text) {
			list = append(list, text)
		}
	}
	return strings.Join(list, ", ")
}

// cameras takes a test image of each camera.
func (d *Doctor) cameras(ctx context.Context) []Finding {
	if len(d.Config.Cameras) == 0 {
		return []Finding{warn("camera", "name one to try it: --camera 0, or --camera demo", "none named")}
	}
	var found []Finding
	if d.uses(capture.CSI) {
		if _, err := os.Stat(d.path("/tmp/argus_socket")); err != nil {
			found = append(found, fail("nvargus-daemon", "sudo systemctl restart nvargus-daemon; in a container, mount /tmp/argus_socket",
				"does not run: CSI cameras need it"))
		}
	}
	for _, c := range d.Config.Cameras {
		found = append(found, d.child(ctx, "camera "+c.Name, Request{Examine: cameraExamination, Camera: c.URI},
			"another program may use the camera, or its driver hangs: unplug it and see dmesg")...)
	}
	return found
}

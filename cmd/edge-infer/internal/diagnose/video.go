package diagnose

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/capture/gstreamer"
	"github.com/edge-infer/edge-infer/capture/source"
	"github.com/edge-infer/edge-infer/engine/cuda"
)

// element is a GStreamer element and the plugin files that may contain it.
type element struct {
	name  string
	files []string
}

// pipelineElements are used on every machine, jetsonElements on a Jetson; CSI cameras need csiElements.
var (
	pipelineElements = []element{
		{"appsink", []string{"libgstapp.so"}},
		{"videoconvert", []string{"libgstvideoconvert.so", "libgstvideoconvertscale.so"}},
		{"decodebin", []string{"libgstplayback.so"}},
		{"rtspsrc", []string{"libgstrtsp.so"}},
		{"h264parse and h265parse", []string{"libgstvideoparsersbad.so"}},
		{"avdec_h264", []string{"libgstlibav.so"}},
	}
	jetsonElements = []element{
		{"nvarguscamerasrc", []string{"libgstnvarguscamerasrc.so"}},
		{"nvvidconv", []string{"libgstnvvidconv.so"}},
		{"nvv4l2decoder", []string{"libgstnvvideo4linux2.so"}},
	}
	csiElements = []string{"nvarguscamerasrc", "nvvidconv"}
)

// gstreamer checks for the elements that csi:// and gst: cameras and the decoders of a Jetson need.
func (d *Doctor) gstreamer(board *cuda.Jetson) Check {
	const name = "GStreamer"
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
	if err := gstreamer.Available(); err != nil {
		detail, remedy := explain(err)
		detail = strings.TrimPrefix(detail, "open: ")
		if csi || pipelines {
			return fail(name, remedy, "%s; csi:// and gst: cameras need it", detail)
		}
		return ok(name, "%s; only csi:// and gst: cameras, and RTSP without NVDEC, need it", detail)
	}
	if len(missing) == 0 {
		return ok(name, "all %d elements found", len(wanted))
	}
	text := "missing " + strings.Join(missing, ", ")
	const remedy = "sudo apt install gstreamer1.0-plugins-base gstreamer1.0-plugins-good gstreamer1.0-plugins-bad gstreamer1.0-libav"
	switch {
	case csi && slices.ContainsFunc(csiElements, func(name string) bool { return board == nil || slices.Contains(missing, name) }):
		return fail(name, "CSI cameras need a Jetson with nvidia-l4t-gstreamer; in a container, start it with --runtime nvidia", "%s", text)
	case (csi || pipelines) && slices.Contains(missing, "appsink"):
		return fail(name, remedy, "%s", text)
	case board != nil:
		return warn(name, remedy+" nvidia-l4t-gstreamer; in a container, start it with --runtime nvidia",
			"%s: streams are decoded on the CPU", text)
	}
	if d.uses(capture.RTSP) {
		return warn(name, remedy, "%s: RTSP video needs them where there is no NVDEC", text)
	}
	return ok(name, "%s; only csi:// and gst: cameras, and RTSP without NVDEC, need them", text)
}

// uses reports whether the configuration has a camera of a kind.
func (d *Doctor) uses(kind capture.Kind) bool {
	for _, c := range d.Config.Cameras {
		if u, err := capture.ParseURI(c.URI); err == nil && u.Kind == kind {
			return true
		}
	}
	return false
}

// devices lists the V4L2 devices. One that cannot be opened is a failure if a camera uses it.
func (d *Doctor) devices() []Check {
	var used []string
	for _, c := range d.Config.Cameras {
		if u, err := capture.ParseURI(c.URI); err == nil && u.Kind == capture.Device {
			used = append(used, u.Address)
		}
	}
	var checks []Check
	found := d.Devices()
	for _, device := range found {
		switch {
		case device.Error != "":
			checks = append(checks, failIf(slices.Contains(used, device.Path),
				warn("video device", deviceRemedy(device.Error), "%s: %s", strings.TrimSpace(device.Path+" "+device.Name), device.Error)))
		case device.Sensor():
			checks = append(checks, failIf(slices.Contains(used, device.Path),
				warn("video device", source.SensorHint(found, device.Path), "%s: %s", strings.TrimSpace(device.Path+" "+device.Name),
					formatList(device.Formats))))
		case device.Captures:
			checks = append(checks, ok("video device", "%s: %s", strings.TrimSpace(device.Path+" "+device.Name), formatList(device.Formats)))
		}
	}
	if len(checks) == 0 {
		return []Check{ok("video device", "none; network cameras, files and demo do not need one")}
	}
	return checks
}

func deviceRemedy(reason string) string {
	switch {
	case strings.Contains(reason, "permission denied"):
		return "sudo usermod -aG video $USER, then log in again; a container needs --device and the group"
	case strings.Contains(reason, "busy"):
		return "stop the program that uses it: fuser -v /dev/video* shows it"
	}
	return "plug the camera in again, and see dmesg"
}

func formatList(all []source.DeviceFormat) string {
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

// cameras captures a frame from each camera.
func (d *Doctor) cameras(ctx context.Context) []Check {
	if len(d.Config.Cameras) == 0 {
		return []Check{warn("camera", "add one: --camera 0, or --camera demo to try the program", "none configured")}
	}
	var checks []Check
	if d.uses(capture.CSI) {
		if _, err := os.Stat(d.path(argusSocket)); err != nil {
			checks = append(checks, fail("nvargus-daemon", "sudo systemctl restart nvargus-daemon; in a container, mount /tmp/argus_socket",
				"not running, CSI cameras need it"))
		}
	}
	for _, c := range d.Config.Cameras {
		checks = append(checks, d.child(ctx, "camera "+c.Name, request{Job: "camera", Camera: c.URI},
			"another program may use the camera, or its driver hangs: unplug it and see dmesg")...)
		if c.Record != "" {
			checks = append(checks, d.child(ctx, "recorded stream of camera "+c.Name, request{Job: "camera", Camera: c.Record},
				"the camera may accept one connection only: remove record, or set it to the address of uri")...)
		}
	}
	return checks
}

package source

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"gocv.io/x/gocv"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/engine"
)

// The GStreamer plugins of JetPack, by file name: hardware decoding, and CSI cameras through the image signal processor.
const (
	pluginDecoder = "libgstnvvideo4linux2.so"
	pluginCSI     = "libgstnvarguscamerasrc.so"
)

// FindPlugin returns the path of a GStreamer plugin, or "" if it is not installed. It searches GStreamer's directories instead of linking
// GStreamer.
func FindPlugin(file string) string {
	dirs := filepath.SplitList(os.Getenv("GST_PLUGIN_PATH"))
	if system := os.Getenv("GST_PLUGIN_SYSTEM_PATH"); system != "" {
		dirs = append(dirs, filepath.SplitList(system)...)
	} else {
		dirs = append(dirs, "/usr/lib/*-linux-gnu/gstreamer-1.0", "/usr/lib/gstreamer-1.0", "/usr/lib64/gstreamer-1.0",
			"/usr/local/lib/gstreamer-1.0", "/usr/local/lib/*-linux-gnu/gstreamer-1.0")
	}
	for _, dir := range dirs {
		if found, _ := filepath.Glob(filepath.Join(dir, file)); len(found) > 0 {
			return found[0]
		}
	}
	return ""
}

// appsink is the end of a pipeline. Unless every frame is wanted, GStreamer replaces frames that are not taken in time.
func appsink(every, sync bool) string {
	return fmt.Sprintf("appsink max-buffers=%d drop=%t sync=%t", map[bool]int{true: 4, false: 1}[every], !every, sync)
}

// quote quotes a value for a pipeline.
func quote(value string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value) + `"`
}

// toNV12 converts on the GPU on a Jetson. NV12 has half the bytes of BGR, is close to what decoders produce, and is read by the letterbox.
func toNV12(jetson bool) string {
	if jetson {
		return "nvvidconv ! video/x-raw,format=NV12"
	}
	return "videoconvert ! video/x-raw,format=NV12"
}

func rtspPipeline(address string, every, jetson bool) string {
	// media=video, because an audio track would stop decodebin from linking.
	return "rtspsrc location=" + quote(address) + " protocols=tcp latency=100 ! application/x-rtp,media=video ! decodebin ! " +
		toNV12(jetson) + " ! " + appsink(every, false)
}

func csiPipeline(u capture.URI, every bool) string {
	width, height, fps := 1280, 720, 30.0
	if u.Width > 0 {
		width, height = u.Width, u.Height
	}
	if u.FPS > 0 {
		fps = u.FPS
	}
	mode := ""
	if u.Mode >= 0 {
		mode = fmt.Sprintf(" sensor-mode=%d", u.Mode)
	}
	const pipeline = "nvarguscamerasrc sensor-id=%s%s ! video/x-raw(memory:NVMM),width=%d,height=%d,framerate=%s,format=NV12 ! " +
		"nvvidconv flip-method=%d ! video/x-raw,format=NV12 ! %s"
	return fmt.Sprintf(pipeline,
		u.Address, mode, width, height, fraction(fps), u.Flip, appsink(every, false))
}

// fraction formats a rate as GStreamer does, rounded to a thousandth.
func fraction(fps float64) string {
	if fps == float64(int(fps)) {
		return fmt.Sprintf("%d/1", int(fps))
	}
	return fmt.Sprintf("%d/1000", int(fps*1000+0.5))
}

// openGStreamer opens a pipeline that ends in an appsink.
func openGStreamer(u capture.URI, pipeline string, options settings) (*video, error) {
	v, err := openVideo(u, pipeline, gocv.VideoCaptureGstreamer, options)
	if err != nil {
		return nil, err
	}
	declared := declaredFormat(pipeline)
	height := int(v.capture.Get(gocv.VideoCaptureFrameHeight)) // of the first image, even if later ones differ
	grey := declared == "GRAY8"
	v.decoder.interpret = func(f matLayout) (engine.PixelFormat, size, error) {
		// OpenCV requests BGR or grey, and other formats only if the pipeline offers neither.
		grey = grey || f.pixel == gocv.MatTypeCV8UC3 || f.rows == height
		return interpretPipeline(f, declared, grey)
	}
	return v, nil
}

var formatField = regexp.MustCompile(`format\s*=\s*(?:\(\s*string\s*\)\s*)?"?([A-Za-z0-9_]+)`)

// declaredFormat returns the pixel format in the last caps of a pipeline, "" if there is none.
func declaredFormat(pipeline string) string {
	all := formatField.FindAllStringSubmatch(pipeline, -1)
	if len(all) == 0 {
		return ""
	}
	return all[len(all)-1][1]
}

// interpretPipeline interprets an appsink's matrix. Several pixel formats share a layout, so that the pipeline must declare which one it
// is; otherwise GStreamer and OpenCV negotiate BGR or grey.
func interpretPipeline(f matLayout, declared string, grey bool) (engine.PixelFormat, size, error) {
	whole := size{f.columns, f.rows}
	switch {
	case f.pixel == gocv.MatTypeCV8UC3:
		return engine.BGR, whole, nil
	case f.pixel == gocv.MatTypeCV8UC4 && (declared == "BGRx" || declared == "BGRA"):
		return engine.BGRx, whole, nil
	case f.pixel == gocv.MatTypeCV8UC2 && declared == "YUY2":
		return engine.YUYV, whole, nil
	case f.pixel == gocv.MatTypeCV8UC1 && declared == "NV12" && f.rows%3 == 0:
		return engine.NV12, size{f.columns, f.rows / 3 * 2}, nil
	case f.pixel == gocv.MatTypeCV8UC1 && grey:
		return engine.GRAY8, whole, nil
	}
	if declared == "" {
		declared = "that it does not name"
	}
	return 0, size{}, &capture.Error{
		Op: "read", Kind: capture.ErrFormat, Message: "the pipeline ends in pixel format " + declared,
		Hint: "put 'videoconvert ! video/x-raw,format=NV12' (or BGR, BGRx, YUY2, GRAY8) before the appsink",
	}
}

// finite matches pipelines that end by themselves; the end of any other is a failure.
var finite = regexp.MustCompile(`num-buffers|filesrc|file://|videoparse`)

func openPipeline(u capture.URI, options settings) (capture.Source, error) {
	pipeline := u.Address
	if !strings.Contains(pipeline, "appsink") {
		// The pipeline's clock sets the pace, as with gst-launch-1.0.
		pipeline += " ! " + appsink(options.EveryFrame, true)
	}
	v, err := openGStreamer(u, pipeline, options)
	if err != nil {
		return nil, withHint(err, "try the pipeline with gst-launch-1.0, with fakesink in place of the appsink")
	}
	v.live = !finite.MatchString(pipeline)
	return v, nil
}

func openCSI(u capture.URI, options settings) (capture.Source, error) {
	if FindPlugin(pluginCSI) == "" {
		return nil, u.NewError("open", capture.ErrNotFound, "CSI cameras need GStreamer's nvarguscamerasrc, which is not installed",
			"it is part of JetPack; elsewhere name a /dev/videoN, or use --camera demo", nil)
	}
	v, err := openGStreamer(u, csiPipeline(u, options.EveryFrame), options)
	if err != nil {
		return nil, withHint(err, "check the ribbon cable and restart nvargus-daemon")
	}
	return v, nil
}

func withHint(err error, hint string) error {
	var typed *capture.Error
	if errors.As(err, &typed) && typed.Hint == "" {
		hinted := *typed
		hinted.Hint = hint
		return &hinted
	}
	return err
}

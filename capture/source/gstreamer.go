package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/capture/gstreamer"
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
	// media=video, because an audio track would stop decodebin from linking. No jitter buffer, because TCP delivers in order.
	return "rtspsrc location=" + quote(address) + " protocols=tcp latency=0 ! application/x-rtp,media=video ! decodebin ! " +
		toNV12(jetson) + " ! " + appsink(every, false)
}

// fraction formats a rate as GStreamer does, rounded to a thousandth.
func fraction(fps float64) string {
	if fps == float64(int(fps)) {
		return fmt.Sprintf("%d/1", int(fps))
	}
	return fmt.Sprintf("%d/1000", int(fps*1000+0.5))
}

// pipeline is a GStreamer pipeline as a source.
type pipeline struct {
	*gstreamer.Pipeline
	uri         capture.URI
	live        bool
	info        gstreamer.Info // of the first image; zero before
	readTimeout time.Duration
	reached     time.Duration // position of the newest image
}

// openGStreamer starts a pipeline that ends in an appsink and waits for the first image.
func openGStreamer(ctx context.Context, u capture.URI, description string, options settings) (*pipeline, error) {
	opened, err := gstreamer.Open(ctx, description, gstreamer.Options{MaxPixels: options.MaxPixels})
	if err != nil {
		return nil, withURI(u, err)
	}
	p := &pipeline{Pipeline: opened, uri: u, live: true, readTimeout: options.ReadTimeout}
	p.info, err = opened.Await(options.OpenTimeout)
	if err != nil {
		_ = opened.Close()
		return nil, p.readError(err)
	}
	return p, nil
}

// Live implements capture.Source.
func (p *pipeline) Live() bool { return p.live }

// FPS implements capture.Source.
func (p *pipeline) FPS() float64 { return p.info.FPS }

// Next implements capture.Source.
func (p *pipeline) Next(lend capture.Lender) (capture.Frame, error) {
	f, err := p.Pipeline.Next(lend, p.readTimeout)
	if err != nil {
		return capture.Frame{}, p.readError(err)
	}
	if p.live {
		f.Position, f.FPS = 0, 0
	}
	p.reached = max(p.reached, f.Position)
	return f, nil
}

// readError adds the camera's URI. The end of a live pipeline is a failure.
func (p *pipeline) readError(err error) error {
	switch {
	case !errors.Is(err, io.EOF):
		return withURI(p.uri, err)
	case p.info.Width == 0:
		return p.uri.NewError("read", capture.ErrUnavailable, "it opened but returned no image", "", nil)
	case p.live:
		return p.uri.NewError("read", capture.ErrUnavailable, "the stream ended", "", nil)
	}
	return err
}

// Progress implements capture.Video.
func (p *pipeline) Progress() (reached, declared time.Duration) { return p.reached, p.info.Duration }

// finite matches pipelines that end by themselves; the end of any other is a failure.
var finite = regexp.MustCompile(`num-buffers|filesrc|file://|videoparse`)

func openPipeline(ctx context.Context, u capture.URI, options settings) (capture.Source, error) {
	description := u.Address
	if !strings.Contains(description, "appsink") {
		// The pipeline's clock sets the pace, as with gst-launch-1.0.
		description += " ! " + appsink(options.EveryFrame, true)
	}
	p, err := openGStreamer(ctx, u, description, options)
	if err != nil {
		return nil, withHint(err, "try the pipeline with gst-launch-1.0, with fakesink in place of the appsink")
	}
	p.live = !finite.MatchString(description)
	return p, nil
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

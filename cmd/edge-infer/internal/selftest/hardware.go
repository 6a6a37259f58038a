package selftest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/capture/source"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/telemetry"
)

const (
	videoFrames  = 60
	cameraFrames = 30
)

// decoder decodes a video of a test image by the machine's decoder, into which an encoder made it before, or the video that was named.
func (r *request) decoder(ctx context.Context) (detail string, err error) {
	video := r.Video
	if video == "" {
		dir, err := os.MkdirTemp("", "edge-infer-selftest-")
		if err != nil {
			return "", err
		}
		defer os.RemoveAll(dir)
		video = filepath.Join(dir, "video.mp4")
		if err := encode(ctx, video); err != nil {
			return "", err
		}
	}
	frames, took, err := take(ctx, "gst:filesrc location="+strconv.Quote(video)+" ! qtdemux ! h264parse ! nvv4l2decoder ! nvvidconv "+
		"! video/x-raw,format=BGRx ! videoconvert ! video/x-raw,format=BGR ! appsink sync=false", videoFrames)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%d images decoded, %.1f a second", frames, float64(frames)/took.Seconds()), nil
}

// encoders are the elements that make H.264, the hardware's first: an Orin Nano has none.
var encoders = []struct{ plugin, element string }{
	{"libgstnvvideo4linux2.so", "nvvidconv ! nvv4l2h264enc"},
	{"libgstx264.so", "x264enc"},
	{"libgstopenh264.so", "openh264enc"},
}

// encode writes a video by the first encoder that works.
func encode(ctx context.Context, video string) error {
	var errs []error
	for _, e := range encoders {
		if source.FindPlugin(e.plugin) == "" {
			continue
		}
		// tee: what is written to the file also gives images, at whose end the file is complete.
		frames, _, err := take(ctx, fmt.Sprintf("gst:videotestsrc num-buffers=%d ! video/x-raw,width=640,height=480,framerate=30/1 ! tee name=t "+
			"t. ! queue ! videoconvert ! %s ! h264parse ! qtmux ! filesink location=%q "+
			"t. ! queue ! videoconvert ! video/x-raw,format=BGR ! appsink sync=false", videoFrames, e.element, video), 2*videoFrames)
		if info, statErr := os.Stat(video); err == nil && frames > 0 && statErr == nil && info.Size() > 0 {
			return nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", e.element, err))
	}
	return fmt.Errorf("%w: no encoder makes a video to decode, name an H.264 file with --video: %w", errAbsent, errors.Join(errs...))
}

// take takes up to so many images, and says how long they took after the first.
func take(ctx context.Context, uri string, most int) (frames int, took time.Duration, err error) {
	opened, err := source.Open(ctx, uri, capture.Options{})
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	pool := &capture.Pool{Buffers: 2}
	defer pool.Close()
	begun := time.Now()
	for frames < most {
		frame, err := opened.Next(pool)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return frames, 0, err
		}
		if frames == 0 {
			begun = time.Now()
		}
		frame.Release()
		frames++
	}
	if frames < 2 {
		return frames, 0, fmt.Errorf("%d images came", frames)
	}
	return frames, time.Since(begun), nil
}

// camera takes images of the first CSI camera.
func (r *request) camera(ctx context.Context) (string, error) {
	frames, took, err := take(ctx, "csi://0", cameraFrames)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%d images, %.1f a second", frames, float64(frames-1)/took.Seconds()), nil
}

// power reads what the machine's sensors say of its power, twice: some say nothing the first time.
func (r *request) power(context.Context) (string, error) {
	reader := &telemetry.Reader{}
	defer reader.Close()
	reader.Read()
	time.Sleep(time.Second)
	reading := reader.Read()
	var rails []string
	for _, rail := range reading.Rails {
		rails = append(rails, fmt.Sprintf("%s %.2f W", rail.Name, rail.Watts))
	}
	if len(rails) == 0 {
		return "", fmt.Errorf("%w: no sensor of power", errAbsent)
	}
	if reading.PowerMode != "" {
		rails = append(rails, "mode "+reading.PowerMode)
	}
	return strings.Join(rails, ", "), nil
}

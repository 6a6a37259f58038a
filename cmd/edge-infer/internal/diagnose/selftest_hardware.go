package diagnose

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

// decoder decodes a video with the hardware decoder: r.Video, or a test pattern that it encodes first.
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
	frames, took, err := readFrames(ctx, "gst:filesrc location="+strconv.Quote(video)+" ! qtdemux ! h264parse ! nvv4l2decoder ! nvvidconv "+
		"! video/x-raw,format=BGRx ! videoconvert ! video/x-raw,format=BGR ! appsink sync=false", videoFrames)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%d images decoded, %.1f fps", frames, float64(frames)/took.Seconds()), nil
}

// encoders lists H.264 encoders, hardware first: an Orin Nano has none.
var encoders = []struct{ plugin, element string }{
	{"libgstnvvideo4linux2.so", "nvvidconv ! nvv4l2h264enc"},
	{"libgstx264.so", "x264enc"},
	{"libgstopenh264.so", "openh264enc"},
}

// encode writes a test video with the first encoder that works.
func encode(ctx context.Context, video string) error {
	var errs []error
	for _, e := range encoders {
		if source.FindPlugin(e.plugin) == "" {
			continue
		}
		// tee: the frames also go to an appsink, so that the end of the stream is known.
		frames, _, err := readFrames(
			ctx,
			fmt.Sprintf("gst:videotestsrc num-buffers=%d ! video/x-raw,width=640,height=480,framerate=30/1 ! tee name=t "+
				"t. ! queue ! videoconvert ! %s ! h264parse ! qtmux ! filesink location=%q "+
				"t. ! queue ! videoconvert ! video/x-raw,format=BGR ! appsink sync=false", videoFrames, e.element, video),
			2*videoFrames,
		)
		if info, statErr := os.Stat(video); err == nil && frames > 0 && statErr == nil && info.Size() > 0 {
			return nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", e.element, err))
	}
	return fmt.Errorf("%w: no encoder for a test video, name an H.264 file with --video: %w", errAbsent, errors.Join(errs...))
}

// readFrames reads at most limit frames and returns their number and the time after the first.
func readFrames(ctx context.Context, uri string, limit int) (frames int, took time.Duration, err error) {
	opened, err := source.Open(ctx, uri, capture.Options{})
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	pool := &capture.Pool{Buffers: 2}
	defer pool.Close()
	begun := time.Now()
	for frames < limit {
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
		return frames, 0, fmt.Errorf("only %d frames received", frames)
	}
	return frames, time.Since(begun), nil
}

// csiCamera reads frames of the first CSI camera.
func (r *request) csiCamera(ctx context.Context) (string, error) {
	frames, took, err := readFrames(ctx, "csi://0", cameraFrames)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%d frames, %.1f fps", frames, float64(frames-1)/took.Seconds()), nil
}

// power reads the power sensors, twice: some report nothing the first time.
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
		return "", fmt.Errorf("%w: no power sensor", errAbsent)
	}
	if reading.PowerMode != "" {
		rails = append(rails, "mode "+reading.PowerMode)
	}
	return strings.Join(rails, ", "), nil
}

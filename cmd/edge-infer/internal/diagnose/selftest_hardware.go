package diagnose

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/capture/source"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/process"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/telemetry"
)

// cameraFrames is the number of frames that are read of a camera.
const cameraFrames = 30

// readCameras reads frames of all cameras of r.Camera at once, CSI cameras in processes of their own as the daemon does.
func (r *request) readCameras(ctx context.Context) (string, error) {
	uris := strings.Fields(r.Camera)
	details := make([]string, len(uris))
	errs := make([]error, len(uris))
	var all sync.WaitGroup
	for i, uri := range uris {
		all.Go(func() {
			frames, took, err := readFrames(ctx, uri, cameraFrames)
			details[i] = fmt.Sprintf("%d frames, %.1f fps", frames, float64(frames-1)/took.Seconds())
			errs[i] = err
		})
	}
	all.Wait()
	return strings.Join(details, "; "), errors.Join(errs...)
}

// readFrames reads at most limit frames and returns their number and the time after the first.
func readFrames(ctx context.Context, uri string, limit int) (frames int, took time.Duration, err error) {
	opened, err := source.Open(ctx, uri, capture.Options{Child: process.CameraChild()})
	if err != nil {
		return 0, time.Second, err
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
			return frames, time.Since(begun), err
		}
		if frames == 0 {
			begun = time.Now()
		}
		frame.Release()
		frames++
	}
	if frames < 2 {
		return frames, time.Second, fmt.Errorf("only %d frames received", frames)
	}
	return frames, time.Since(begun), nil
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

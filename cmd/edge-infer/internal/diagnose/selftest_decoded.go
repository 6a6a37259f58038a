package diagnose

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/capture/gstreamer"
	"github.com/edge-infer/edge-infer/capture/nvdec"
	"github.com/edge-infer/edge-infer/capture/rtsp"
	"github.com/edge-infer/edge-infer/engine/cuda"
)

const (
	decodedImages = 60
	// decodedLimit is for all of them; the video has 30 in a second.
	decodedLimit = 30 * time.Second
	// decodingPause lets the decoder finish an image, so that its time is not part of what is measured.
	decodingPause = 10 * time.Millisecond
)

// decodedTimes measures how long a decoded image takes to the GPU memory that networks read, by the decoder that the daemon would use, and
// to host memory.
func (r *request) decodedTimes(ctx context.Context) (detail string, err error) {
	server, closeServer, err := serveVideo(r.Codec)
	if err != nil {
		return "", err
	}
	defer closeServer()
	u, err := capture.ParseURI(server.URL(0))
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, decodedLimit)
	defer cancel()
	camera, err := rtsp.Open(ctx, u, rtsp.Options{OpenTimeout: streamLimit, ReadTimeout: streamLimit})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, camera.Close()) }()
	device, err := cuda.Open(r.Engine.FirstGPU())
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, device.Close()) }()
	decoder, name, err := r.openDeviceDecoder(ctx, camera.Codec())
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, decoder.Close()) }()
	m := &decodedMeter{decoder: decoder, device: device}
	defer m.pool.Close()
	units := camera.Units()
	for len(m.toGPU) < decodedImages {
		unit, err := units.Next(ctx)
		if err == nil {
			err = decoder.Submit(&unit)
		}
		if err == nil {
			err = m.take()
		}
		if err != nil {
			return "", fmt.Errorf("%s, after %d images: %w", name, len(m.toGPU), err)
		}
	}
	return fmt.Sprintf("%s: %d images of %dx%d NV12, median %d us to CUDA memory, %d us more to host memory", name, len(m.toGPU), m.width,
		m.height, median(m.toGPU).Microseconds(), median(m.toHost).Microseconds()), nil
}

// openDeviceDecoder opens the first decoder that leaves images in the GPU's memory: NVDEC, or that of an Orin or Xavier.
func (r *request) openDeviceDecoder(ctx context.Context, codec capture.Codec) (capture.Decoder, string, error) {
	gpu := r.Engine.FirstGPU()
	first, err := nvdec.Open(nvdec.Options{Codec: codec, GPU: gpu, MaxPixels: capture.DefaultMaxPixels})
	if err == nil {
		return first, "NVDEC", nil
	}
	second, another := gstreamer.OpenNVMMDecoder(ctx, gstreamer.NVMMOptions{Codec: codec, GPU: gpu, MaxPixels: capture.DefaultMaxPixels})
	if another == nil {
		return second, "NVMM", nil
	}
	return nil, "", fmt.Errorf("%w: %w; %w", errAbsent, err, another)
}

// decodedMeter measures the images of a decoder.
type decodedMeter struct {
	decoder       capture.Decoder
	device        *cuda.Device
	pool          capture.Pool
	host          []byte
	width, height int
	toGPU, toHost []time.Duration
}

// take measures the images that the decoder has by now.
func (m *decodedMeter) take() error {
	if background, ok := m.decoder.(capture.BackgroundDecoder); ok {
		background.Await(decodingPause)
	} else {
		time.Sleep(decodingPause)
	}
	for {
		begun := time.Now()
		f, found, err := m.decoder.Next(&m.pool)
		if errors.Is(err, capture.ErrImage) {
			continue
		}
		if err != nil || !found {
			return err
		}
		err = m.measure(&f, begun)
		f.Release()
		if err != nil {
			return err
		}
	}
}

// measure waits until an image is in the GPU's memory and copies it to the host.
func (m *decodedMeter) measure(f *capture.Frame, begun time.Time) error {
	if err := m.device.Synchronize(); err != nil {
		return err
	}
	arrived := time.Now()
	im := f.Image()
	if !im.OnDevice() {
		return errors.New("the image is in host memory")
	}
	if len(m.host) < im.HostBytes() {
		m.host = make([]byte, im.HostBytes())
	}
	if _, err := im.ToHost(m.host); err != nil {
		return err
	}
	m.width, m.height = im.Width, im.Height
	m.toGPU = append(m.toGPU, arrived.Sub(begun))
	m.toHost = append(m.toHost, time.Since(arrived))
	return nil
}

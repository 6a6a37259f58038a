package network

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/triton"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// ServerProbe is the state of an inference server and of the model on it.
type ServerProbe struct {
	Address  string `json:"address"`
	Software string `json:"about,omitempty"`         // name and version
	Version  string `json:"model_version,omitempty"` // that answered
	Wire     string `json:"wire,omitempty"`          // encoding of images
	Shared   bool   `json:"shared_memory"`           // images are not sent but shared
	OnGPU    bool   `json:"shared_gpu_memory"`       // the shared memory is on the GPU
	// NotOnGPUReason is why shared memory is not GPU memory, if that was configured.
	NotOnGPUReason string  `json:"unshared,omitempty"`
	Latency        float64 `json:"latency_ms"`       // of a request with a gray image; 0 where the model takes none
	Reason         string  `json:"reason,omitempty"` // why the server cannot be used; the rest is empty then
	Hint           string  `json:"hint,omitempty"`
}

// ProbeServers probes each configured server concurrently with a gray image. It returns them in the order of c; none if the network runs
// locally.
func ProbeServers(ctx context.Context, c *config.Config) []ServerProbe {
	addresses, remote := strings.CutPrefix(c.Engine.Backend, triton.Name+"=")
	if !remote {
		return nil
	}
	options := Options(c, c.Detect.Confidence, slog.New(slog.DiscardHandler))
	unread := options.Load()
	list := strings.Split(addresses, ",")
	all := make([]ServerProbe, len(list))
	var group sync.WaitGroup
	for i, address := range list {
		s := &all[i]
		s.Address = strings.TrimSpace(address)
		group.Go(func() {
			err := unread
			if err == nil {
				err = s.probe(ctx, options)
			}
			if err == nil {
				return
			}
			*s = ServerProbe{Address: s.Address, Reason: err.Error()}
			if known, ok := errors.AsType[*engine.Error](err); ok {
				plain := *known
				plain.Hint = ""
				s.Reason, s.Hint = plain.Error(), known.Hint
			}
		})
	}
	group.Wait()
	return all
}

// probe opens the model on the server and times the second of two requests, because the first one warms up.
func (s *ServerProbe) probe(ctx context.Context, options predict.Options) (err error) {
	options.Backend = triton.Name + "=" + s.Address
	raw, err := predict.OpenRaw(ctx, options)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, raw.Close()) }()
	m := raw.Model()
	s.Software = m.BackendVersion
	if m.Image != nil {
		img := engine.Image{Data: make([]byte, m.Width*m.Height), Width: m.Width, Height: m.Height, Stride: m.Width, Format: engine.GRAY8}
		for range 2 {
			began := time.Now()
			if _, err := raw.Images(img); err != nil {
				return err
			}
			s.Latency = float64(time.Since(began).Microseconds()) / 1000
		}
	}
	if e, ok := raw.Engine().(interface{ Status() triton.Status }); ok {
		status := e.Status().Servers[0]
		s.Version = status.Version
		s.Wire = status.Wire
		s.Shared = status.Shared
		s.OnGPU = status.OnGPU
		if options.Remote.SharedMemory == triton.CUDAMemory {
			s.NotOnGPUReason = status.Unshared
		}
	}
	return nil
}

// String describes a working server in one line.
func (s *ServerProbe) String() string {
	text := s.Software
	if s.Version != "" {
		text += ", version " + s.Version + " of the model"
	}
	switch {
	case s.Wire == "":
		return text + ", which takes no images"
	case s.OnGPU:
		text += ", images on the GPU"
	case s.Shared:
		text += ", images through shared memory"
	default:
		text += ", images as " + s.Wire
	}
	text += ", " + strconv.FormatFloat(s.Latency, 'f', 1, 64) + " ms an image"
	if s.NotOnGPUReason != "" {
		text += " (not on the GPU: " + s.NotOnGPUReason + ")"
	}
	return text
}

package tensorrt

// #include "shim.h"
import "C"

import (
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/cuda"
)

// Capabilities is what a release of TensorRT has to offer on a device.
type Capabilities struct {
	// Precisions are FP32 and those that the device has faster arithmetic for: fp16, int8, bf16, fp8, fp4.
	Precisions []string `json:"precisions"`
	// DLACores counts the deep learning accelerators; -1 when nobody was asked.
	DLACores int `json:"dla_cores"`
	// FromBuilder says that the builder itself was asked about FP16 and INT8, instead of the compute capability.
	FromBuilder bool `json:"asked_builder"`
}

// ExpectedCapabilities tells from release and compute capability what a device should offer, without a context on it. Source: the hardware and precision
// table of NVIDIA's TensorRT support matrix.
func ExpectedCapabilities(version Version, device cuda.Facts) Capabilities {
	offer := Capabilities{DLACores: -1}
	if !device.Integrated {
		offer.DLACores = 0 // they belong to Tegra
	}
	capability := capability(device)
	offer.Precisions = list(version, capability, fastHalf(capability), capability >= 61 && capability != 62)
	return offer
}

// Describe asks a release what it offers on a device. Asking the builder too takes seconds and hundreds of megabytes of memory for its
// kernels.
func (l *Library) Capabilities(device *cuda.Device, builder bool) (Capabilities, error) {
	var c C.ei_offer
	var e C.ei_error
	if C.ei_library_describe(l.handle, C.ei_cuda_context(device.Context()), flag(builder), &c, &e) != 0 {
		return Capabilities{}, failure("describe", &e)
	}
	offer := ExpectedCapabilities(l.Version, device.Facts())
	offer.DLACores = int(c.dla_cores)
	if c.asked_builder != 0 {
		offer.FromBuilder = true
		offer.Precisions = list(l.Version, capability(device.Facts()), c.fast_fp16 != 0, c.fast_int8 != 0)
	}
	return offer, nil
}

// list adds what only the newer releases can build.
func list(version Version, capability int, fp16, int8 bool) []string {
	names := []string{string(engine.FP32)}
	for _, p := range []struct {
		name  string
		found bool
	}{
		{string(engine.FP16), fp16},
		{string(engine.INT8), int8},
		{"bf16", version.Major >= 9 && capability >= 80},
		{"fp8", version.Major >= 9 && capability >= 89},
		{"fp4", (version.Major > 10 || version.Major == 10 && version.Minor >= 8) && capability >= 100},
	} {
		if p.found {
			names = append(names, p.name)
		}
	}
	return names
}

// capability is 87 for sm_87.
func capability(device cuda.Facts) int { return 10*device.Major + device.Minor }

// fastHalf reports whether FP16 has more than the rate of FP32.
func fastHalf(capability int) bool { return capability >= 53 && capability != 61 }

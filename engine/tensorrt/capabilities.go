package tensorrt

// #include "shim.h"
import "C"

import (
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/cuda"
)

// Capabilities describes what TensorRT supports on a device.
type Capabilities struct {
	// Precisions are FP32 and the precisions that the device accelerates: fp16, int8, bf16, fp8, fp4.
	Precisions []string `json:"precisions"`
	// DLACores is the number of deep learning accelerators; -1 if unknown.
	DLACores int `json:"dla_cores"`
	// FromBuilder is set if FP16 and INT8 support were reported by the builder instead of derived from the compute capability.
	FromBuilder bool `json:"asked_builder"`
}

// ExpectedCapabilities derives the capabilities from TensorRT version and compute capability, without a context on the device. Source: the
// hardware and precision table of NVIDIA's TensorRT support matrix.
func ExpectedCapabilities(version Version, device cuda.Facts) Capabilities {
	offer := Capabilities{DLACores: -1}
	if !device.Integrated {
		offer.DLACores = 0 // DLA exists on Tegra only
	}
	capability := capability(device)
	offer.Precisions = precisions(version, capability, fastHalf(capability), capability >= 61 && capability != 62)
	return offer
}

// Capabilities queries TensorRT for its capabilities on a device. With builder, it creates a builder, which takes seconds and hundreds of
// megabytes for its kernels.
func (l *Library) Capabilities(device *cuda.Device, builder bool) (Capabilities, error) {
	var c C.ei_offer
	var e C.ei_error
	if C.ei_library_describe(l.handle, C.ei_cuda_context(device.Context()), flag(builder), &c, &e) != 0 {
		return Capabilities{}, shimError("describe", &e)
	}
	offer := ExpectedCapabilities(l.Version, device.Facts())
	offer.DLACores = int(c.dla_cores)
	if c.asked_builder != 0 {
		offer.FromBuilder = true
		offer.Precisions = precisions(l.Version, capability(device.Facts()), c.fast_fp16 != 0, c.fast_int8 != 0)
	}
	return offer, nil
}

// precisions adds the precisions of newer versions.
func precisions(version Version, capability int, fp16, int8 bool) []string {
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

// capability returns 87 for sm_87.
func capability(device cuda.Facts) int { return 10*device.Major + device.Minor }

// fastHalf reports whether the FP16 rate exceeds the FP32 rate.
func fastHalf(capability int) bool { return capability >= 53 && capability != 61 }

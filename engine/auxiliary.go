package engine

import (
	"encoding/binary"
	"math"
	"slices"
)

// Names of auxiliary inputs whose values follow from the image input: the size that boxes refer to, its scale, and the mask of unpadded
// pixels.
const (
	sizesInput = "orig_target_sizes" // RT-DETR, D-FINE, DEIM: width and height for each image
	maskInput  = "pixel_mask"        // DETR of Hugging Face
	shapeInput = "im_shape"          // PaddleDetection: height and width for each image
	scaleInput = "scale_factor"      // PaddleDetection: by which the image was scaled, vertically and horizontally
)

// IsAuxiliary reports whether the values of an input follow from the image input; see AuxiliaryTensor.
func IsAuxiliary(in TensorInfo) bool {
	two := len(in.Shape) == 2 && (in.Shape[1] == 2 || in.Shape[1] == -1)
	switch in.Name {
	case sizesInput:
		return in.Type == Int64 && two
	case shapeInput, scaleInput:
		return in.Type == Float32 && two
	case maskInput:
		return in.Type == Int64 && len(in.Shape) == 3
	}
	return false
}

// AuxiliaryInputs returns the names of inputs that IsAuxiliary knows.
func AuxiliaryInputs() []string { return []string{sizesInput, maskInput, shapeInput, scaleInput} }

// maxMaskPixels is the size in pixels of the largest mask that a file or a server may require.
const maxMaskPixels = 1 << 22

// AuxiliaryTensor returns an auxiliary input for one image. Its values request boxes in input pixels and mark all of the input as image. ok
// is false if the mask would be too large.
func AuxiliaryTensor(in TensorInfo, img *ImageInput) (t Tensor, ok bool) {
	t = Tensor{Name: in.Name, Type: in.Type, Shape: []int64{1, 2}}
	integers := func(values ...int64) {
		for _, v := range values {
			t.Data = binary.LittleEndian.AppendUint64(t.Data, uint64(v))
		}
	}
	floats := func(values ...float32) {
		for _, v := range values {
			t.Data = binary.LittleEndian.AppendUint32(t.Data, math.Float32bits(v))
		}
	}
	switch in.Name {
	case sizesInput:
		integers(int64(img.Width), int64(img.Height))
	case shapeInput:
		floats(float32(img.Height), float32(img.Width))
	case scaleInput:
		floats(1, 1)
	case maskInput:
		t.Shape = []int64{1, int64(img.Height), int64(img.Width)}
		for axis, size := range in.Shape {
			if axis > 0 && size > 0 {
				t.Shape[axis] = size
			}
		}
		if t.Shape[1] > maxMaskPixels || t.Shape[2] > maxMaskPixels/t.Shape[1] {
			return Tensor{}, false
		}
		integers(slices.Repeat([]int64{1}, int(t.Shape[1]*t.Shape[2]))...)
	}
	return t, true
}

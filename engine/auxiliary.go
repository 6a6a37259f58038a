package engine

import "slices"

// Names of auxiliary inputs whose values follow from the image input: the size that boxes refer to, and the mask of unpadded pixels.
const (
	sizesInput = "orig_target_sizes" // RT-DETR, D-FINE, DEIM: width and height for each image
	maskInput  = "pixel_mask"        // DETR of Hugging Face
)

// IsAuxiliary reports whether the values of an input follow from the image input; see AuxiliaryValues.
func IsAuxiliary(in TensorInfo) bool {
	switch in.Name {
	case sizesInput:
		return in.Type == Int64 && len(in.Shape) == 2 && (in.Shape[1] == 2 || in.Shape[1] == -1)
	case maskInput:
		return in.Type == Int64 && len(in.Shape) == 3
	}
	return false
}

// maxMaskPixels is the size in pixels of the largest mask that a file or a server may require.
const maxMaskPixels = 1 << 22

// AuxiliaryValues returns the shape, with a batch of 1, and the values of an auxiliary input for one image. The values request boxes in
// input pixels and mark all of the input as image. ok is false if the mask would be too large.
func AuxiliaryValues(in TensorInfo, img *ImageInput) (shape, values []int64, ok bool) {
	if in.Name != maskInput {
		return []int64{1, 2}, []int64{int64(img.Width), int64(img.Height)}, true
	}
	shape = []int64{1, int64(img.Height), int64(img.Width)}
	for axis, size := range in.Shape {
		if axis > 0 && size > 0 {
			shape[axis] = size
		}
	}
	if shape[1] > maxMaskPixels || shape[2] > maxMaskPixels/shape[1] {
		return nil, nil, false
	}
	return shape, slices.Repeat([]int64{1}, int(shape[1]*shape[2])), true
}

package engine

import "slices"

// Names of auxiliary inputs whose values follow from the image input: the size that boxes refer to, and the mask of unpadded pixels.
const (
	sizesInput = "orig_target_sizes" // RT-DETR, D-FINE, DEIM: width and height for each image
	maskInput  = "pixel_mask"        // DETR of Hugging Face
)

// Beside reports whether an input is an auxiliary one whose values follow from the image input; see BesideValues.
func Beside(in TensorInfo) bool {
	switch in.Name {
	case sizesInput:
		return in.Type == Int64 && len(in.Shape) == 2 && (in.Shape[1] == 2 || in.Shape[1] == -1)
	case maskInput:
		return in.Type == Int64 && len(in.Shape) == 3
	}
	return false
}

// mostPixels is the largest mask in pixels that a file or a server may require.
const mostPixels = 1 << 22

// BesideValues are the values of such an input for one image, and their shape, whose first dimension is 1: boxes are to be in pixels of
// the network's own input, from where they are taken to the image as those of any other network are, and all of it is image. false for
// a mask that is too large.
func BesideValues(in TensorInfo, img *ImageInput) (shape, values []int64, ok bool) {
	if in.Name != maskInput {
		return []int64{1, 2}, []int64{int64(img.Width), int64(img.Height)}, true
	}
	shape = []int64{1, int64(img.Height), int64(img.Width)}
	for axis, size := range in.Shape {
		if axis > 0 && size > 0 {
			shape[axis] = size
		}
	}
	if shape[1] > mostPixels || shape[2] > mostPixels/shape[1] {
		return nil, nil, false
	}
	return shape, slices.Repeat([]int64{1}, int(shape[1]*shape[2])), true
}

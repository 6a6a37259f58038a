// Package tile finds small objects on large images: a predictor made of a predictor, which looks at overlapping tiles of an image at the
// scale that the network was trained for and at the whole image, and tells what several of them saw of one object as one detection.
//
// Tiles are views into the image's own memory. What they see of it, they see of the same pixels; so two detections are of one object when
// they agree about the part of the image that both were made from (see merger), which says more than how far whole boxes overlap: the
// half that a border leaves of an object agrees with the whole, a neighbour of the same kind does not.
package tile

// Package tile detects small objects in large images: a predictor made of a predictor, which runs on overlapping tiles of an image at the
// scale of the network's training and optionally on the whole image, and merges the detections of an object in several views.
//
// Tiles are views into the image's own memory. Two detections are of one object when they agree on the part of the image that both views
// show (see merger). That is better evidence than the overlap of whole boxes: the half of an object at a border agrees with the whole
// object, a neighbour of the same class does not.
package tile

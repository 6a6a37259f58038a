// Package tile finds small objects on large pictures: a predictor made of a predictor, which looks at overlapping tiles of a picture at the
// scale that the network was trained for and at the whole picture, and tells what several of them saw of one object as one finding.
//
// Tiles are views into the picture's own memory. What they see of it, they see of the same pixels; so two findings are of one object when
// they agree about the part of the picture that both were made from (see merger), which says more than how far whole boxes overlap: the
// half that a border leaves of an object agrees with the whole, a neighbour of the same kind does not.
package tile

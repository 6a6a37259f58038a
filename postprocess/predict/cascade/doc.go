// Package cascade shows a second network what a first one found: the make of a car, whether somebody wears a helmet, the number on a
// plate. What it says are attributes of the object.
//
// Chained looks once at every detection of an image. Attendant looks again and again at the objects of cameras, at most so often, and has
// the looks vote.
//
// What a network is shown is cut out of the image and copied side by side into memory that its engine reads without another copy, so
// that the image is free at once, whatever its format. Many objects are one request of the network, and so one launch of the letterbox.
package cascade

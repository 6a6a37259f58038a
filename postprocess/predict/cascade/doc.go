// Package cascade runs secondary networks on the objects that a first network has detected: classifiers, text readers and embedding
// networks. Their results are attributes and embeddings of the objects.
//
// Chained runs them once on every detection of an image. Secondary runs them repeatedly on the tracked objects of cameras, at limited
// rates, and lets their latest predictions vote.
//
// Crops are copied side by side into memory that the engine reads without another copy, so that the image is free at once, whatever its
// format. The crops of many objects are one request of the network, with one launch of the letterbox.
package cascade

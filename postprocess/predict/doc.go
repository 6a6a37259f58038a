// Package predict turns images into detections: a model is opened by name, images go in, detections come out. No other package submits to
// an engine, waits for it or decodes its outputs.
//
// Open makes a Predictor of a model file: it reads the file and its metadata, lets engine/auto choose a backend (Choose reports the choice
// beforehand), builds a missing TensorRT plan if the caller provides a builder, and makes a decoder for the outputs. Wrap makes one of an
// open engine. Other predictors are made of predictors: tiles, ensembles and cascades, in the packages below.
//
// A frame loop keeps the slots of a predictor busy with Submit and Wait; a caller that has all images calls Run. From the second request of
// a slot on Submit and Wait allocate nothing.
//
// # Thresholds
//
// Decoding.MinScore is the lowest score of a detection that comes out. Users see those above their confidence, which is higher where a
// tracker in between uses weaker detections as well.
package predict

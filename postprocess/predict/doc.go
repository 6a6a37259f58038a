// Package predict is the one seam between images and detections: a model goes in by name, images after it, and what they show comes out.
// Nothing outside it submits to an engine, waits for it or decodes what it gives.
//
// A Predictor is whatever turns images into detections. Open makes one of a model file: it reads the file and what the file says of itself,
// has engine/auto choose a backend (and Choose says beforehand which one and why), has a missing TensorRT plan built where the caller knows
// how, and fits a decoder to the outputs. Wrap does the last step for an engine that is open already. Other predictors are made of
// predictors: that of package tile finds small objects on large images.
//
// A frame loop keeps the slots of a predictor busy with Submit and Wait; whoever has all images at hand calls Run. From the second round
// of a slot on neither allocates.
//
// # Thresholds
//
// The names that package postprocess gives to thresholds are used here too. Decoding.MinScore is the decoded one: no detection under it
// comes out. What a user sees is cut once more, at the reported threshold, by whoever shows it; the two differ where something in between,
// such as a tracker, uses weaker detections.
package predict

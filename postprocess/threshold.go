package postprocess

// Thresholds of scores have these names throughout the project:
//
//   - reported: the lowest score of what a user sees, in a message, an image or an event. It is what --confidence and the settings name.
//   - decoded: the lowest score that leaves the decoder. It is the reported one unless something in between uses weaker detections: a
//     tracker, or average precision.
//   - tracked, high and low: from the high one on a detection may begin a track, from the low one on it may carry one on. The high one is the
//     reported threshold, the low one the decoded.
//   - floor: the decoded threshold for average precision, whose curve needs the weak detections too.
const (
	// DefaultConfidence is the reported threshold where none is given.
	DefaultConfidence = 0.25
	// EvaluationMinScore is where average precision begins to count.
	EvaluationMinScore = 0.001
)

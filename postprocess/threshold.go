package postprocess

// Score thresholds have these names throughout the project:
//
//   - confidence: the minimum score of what users see in messages, images and events; --confidence and the settings set it.
//   - minimum score: the minimum score that leaves the decoder. It equals the confidence unless a tracker or average precision needs weaker
//     detections.
//   - high and low threshold of the tracker (ByteTrack): confidence and minimum score.
const (
	// DefaultConfidence is the default confidence.
	DefaultConfidence = 0.25
	// EvaluationMinScore is the minimum score for average precision, whose curve includes weak detections.
	EvaluationMinScore = 0.001
)

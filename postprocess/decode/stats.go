package decode

// Stats counts what decoding one image did. Candidates - Truncated is what suppression looked at.
type Stats struct {
	Candidates    int // boxes over the threshold
	Truncated     int // candidates dropped because there were more than Decoder.MaxCandidates, or than an engine's list holds
	Suppressed    int // candidates removed by a better overlapping box, or by Decoder.Limit
	Outside       int // boxes that lie wholly outside the source image, in the letterbox bars for instance
	Invalid       int // numbers passed over: boxes that are NaN, infinite or empty, and what is Impossible
	BadScores     int // scores that are none, being NaN, under 0 or over 1, and class numbers that the model does not have
	UnknownPixels int // places of a map of classes that say nothing: NaN, and class numbers that the model does not have
	OutsideInput  int // boxes where a network that is read rightly has none: wholly outside its input, or within the first two pixels of it
}

// Add adds what decoding another image did.
func (s *Stats) Add(more *Stats) {
	s.Candidates += more.Candidates
	s.Truncated += more.Truncated
	s.Suppressed += more.Suppressed
	s.Outside += more.Outside
	s.Invalid += more.Invalid
	s.BadScores += more.BadScores
	s.UnknownPixels += more.UnknownPixels
	s.OutsideInput += more.OutsideInput
}

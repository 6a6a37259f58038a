package postprocess

// Attribute is what a second network says of an object that a first one found: the make of a car, whether somebody wears a helmet.
type Attribute struct {
	// Name is the attribute's own, as the cascade is configured; Value the label that the network gives.
	Name, Value string
	// Class is the number of the value among that network's labels, -1 for a text that it read.
	Class int
	// Score is how sure the network is, 0 to 1: of one look, or the mean over all looks that had a vote.
	Score float32
	// Votes is how many looks at the object had a vote.
	Votes int
}

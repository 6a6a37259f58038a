package postprocess

// Attribute is the result of a second network for an object of the first: the make of a car, or whether a person wears a helmet.
type Attribute struct {
	// Name is the attribute's name in the configuration of the cascade, Value the label that the network predicts.
	Name, Value string
	// Class is the number of the value among that network's labels, -1 for recognised text.
	Class int
	// Score is the confidence, 0 to 1: of one crop, or the mean over all crops that voted.
	Score float32
	// Votes is the number of crops that voted.
	Votes int
}

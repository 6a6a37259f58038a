package backoff

import "time"

// Network is the pause before a network that failed is opened again.
var Network = Exponential{Min: 2 * time.Second, Max: 2 * time.Minute}

const (
	// MostAbandoned is how many calls into networks may fail to return before the program must start anew: each has a thread and memory.
	MostAbandoned = 3
	// HangMemory is after which time without a hang the pauses of a network are short again.
	HangMemory = 10 * time.Minute
	// OpeningNotice is how long the opening of a network may take before it is logged.
	OpeningNotice = 10 * time.Second
)

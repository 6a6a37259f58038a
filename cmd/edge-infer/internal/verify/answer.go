package verify

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"
)

const (
	// answerLimit is the size of an answer in bytes above which it counts as none.
	answerLimit = 4 << 10
	// labelLimit is the length of a label in bytes.
	labelLimit = 64
)

// verdict is what is done with an object.
type verdict int

const (
	unanswered verdict = iota
	confirmed
	relabelled
	dropped
)

// answer is what the service has answered about an object.
type answer struct {
	verdict verdict
	label   string // with relabelled
}

// parseAnswer reads the body of an answer.
func parseAnswer(body []byte) (answer, error) {
	if len(body) > answerLimit {
		return answer{}, fmt.Errorf("the answer has more than %d bytes", answerLimit)
	}
	var a struct{ Verdict, Label string }
	if json.Unmarshal(body, &a) != nil {
		return answer{}, errors.New(`the answer is not JSON such as {"verdict": "confirm"}`)
	}
	switch a.Verdict {
	case "confirm":
		return answer{verdict: confirmed}, nil
	case "drop":
		return answer{verdict: dropped}, nil
	case "relabel":
		if err := checkLabel(a.Label); err != nil {
			return answer{}, err
		}
		return answer{relabelled, a.Label}, nil
	}
	return answer{}, errors.New("the answer's verdict is not confirm, relabel or drop")
}

func checkLabel(label string) error {
	switch {
	case strings.TrimSpace(label) == "":
		return errors.New("the answer relabels without a label")
	case len(label) > labelLimit:
		return fmt.Errorf("the answer's label has more than %d bytes", labelLimit)
	case strings.ContainsFunc(label, func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }):
		return errors.New("the answer's label has characters that cannot be printed")
	}
	return nil
}

package postprocess

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/internal/spelling"
)

// Label returns the name of a class, or "class N" without a name.
func Label(labels []string, class int) string {
	if class >= 0 && class < len(labels) {
		return labels[class]
	}
	return "class " + strconv.Itoa(class)
}

// NearestLabel returns the label that was probably meant by name: a word for the same class, or one of a similar spelling. It returns "" if
// there is none. A class of COCO is no misspelling of another label: cat does not stand for car.
func NearestLabel(name string, labels []string) string {
	name = strings.TrimSpace(name)
	words := spelling.Classes()
	for _, label := range engine.KnownLabels("coco") {
		words.Keep(label)
	}
	return words.Suggest(name, labels)
}

// UnknownLabelError returns the error for a label that the model does not have: with the one that was probably meant, or the first ones
// there are.
func UnknownLabelError(name string, labels []string) error {
	if near := NearestLabel(name, labels); near != "" {
		return fmt.Errorf("label %.40q is not one of the model's %d, did you mean %q?", name, len(labels), near)
	}
	list, shown := "", 0
	for shown < min(len(labels), 10) && len(list)+len(labels[shown]) < 100 {
		list += ", " + labels[shown]
		shown++
	}
	list = strings.TrimPrefix(list, ", ")
	if more := len(labels) - shown; more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Errorf("label %.40q is not one of the model's: %s", name, list)
}

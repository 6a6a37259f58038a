package postprocess

import "strconv"

// Label is the class's name, or its number where the model has no name for it.
func Label(labels []string, class int) string {
	if class >= 0 && class < len(labels) {
		return labels[class]
	}
	return "class " + strconv.Itoa(class)
}

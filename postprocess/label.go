package postprocess

import "strconv"

// Label returns the name of a class, or "class N" without a name.
func Label(labels []string, class int) string {
	if class >= 0 && class < len(labels) {
		return labels[class]
	}
	return "class " + strconv.Itoa(class)
}

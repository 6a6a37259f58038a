package infer

import (
	"fmt"

	"github.com/edge-infer/edge-infer/postprocess/format"
)

// names are those of the files that are written for pictures, and what each was written for: pictures of the same name from different
// folders get a number.
type names map[string]string

// of is the name of a picture's file with that suffix. It is always the same.
func (n names) of(source, suffix string) string {
	stem := format.Stem(source)
	name := stem + suffix
	for again := 2; n[name] != "" && n[name] != source; again++ {
		name = fmt.Sprintf("%s_%d%s", stem, again, suffix)
	}
	n[name] = source
	return name
}

package infer

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/edge-infer/edge-infer/postprocess/format"
)

// names are those of the files that are written for pictures, and what each was written for: pictures of the same name from different
// folders get a number. A film that has a file for each of its pictures stands there by its name and frames.
type names map[string]string

// frames stands behind a film's name for the numbers of its pictures.
const frames = "_#"

var numbered = regexp.MustCompile(`^(.*)_[0-9]+$`)

// of is the name of a picture's file with that suffix. It is always the same.
func (n names) of(source, suffix string) string {
	return n.first(source, suffix, func(stem string) bool {
		if suffix != "" { // of copies: a film has one file, as a picture has
			return true
		}
		film := numbered.FindStringSubmatch(stem)
		return film == nil || n[film[1]+frames] == ""
	})
}

// ofFilm is the name of a film each of whose pictures has a file, with its number behind the name. It is always the same.
func (n names) ofFilm(source string) string {
	name := n.first(source, frames, func(stem string) bool {
		for picture := range n {
			if film := numbered.FindStringSubmatch(picture); film != nil && film[1] == stem {
				return false
			}
		}
		return true
	})
	return strings.TrimSuffix(name, frames)
}

// reserved is whose a name is that pictures of a film have, or that would give them one.
const reserved = "\x00"

// first is the name of a source, and for a new one the first that nobody has and that is free.
func (n names) first(source, suffix string, free func(stem string) bool) string {
	stem := format.Stem(source)
	candidate := stem
	for again := 2; ; again++ {
		name := candidate + suffix
		if n[name] == "" {
			n[name] = reserved
			if free(candidate) {
				n[name] = source
			}
		}
		if n[name] == source {
			return name
		}
		candidate = fmt.Sprintf("%s-%d", stem, again) // no picture of a film is called that
	}
}

package infer

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/edge-infer/edge-infer/postprocess/format"
)

// names are those of the files that are written for images, and what each was written for: images of the same name from different
// directories get a number. A video that has a file for each of its images stands there by its name and frames.
type names map[string]string

// frames stands behind a video's name for the numbers of its images.
const frames = "_#"

var numbered = regexp.MustCompile(`^(.*)_[0-9]+$`)

// of is the name of an image's file with that suffix. It is always the same.
func (n names) of(source, suffix string) string {
	return n.first(source, suffix, func(stem string) bool {
		if suffix != "" { // of copies: a video has one file, as an image has
			return true
		}
		video := numbered.FindStringSubmatch(stem)
		return video == nil || n[video[1]+frames] == ""
	})
}

// ofVideo is the name of a video each of whose images has a file, with its number behind the name. It is always the same.
func (n names) ofVideo(source string) string {
	name := n.first(source, frames, func(stem string) bool {
		for img := range n {
			if video := numbered.FindStringSubmatch(img); video != nil && video[1] == stem {
				return false
			}
		}
		return true
	})
	return strings.TrimSuffix(name, frames)
}

// reserved is whose a name is that images of a video have, or that would give them one.
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
		candidate = fmt.Sprintf("%s-%d", stem, again) // no image of a video is called that
	}
}

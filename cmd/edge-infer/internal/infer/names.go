package infer

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/edge-infer/edge-infer/postprocess/format"
)

// names maps the names of output files to their sources. Images with the same name in different directories get a number. A video with a
// file per frame has an entry for its name with the suffix frames.
type names map[string]string

// frames is the suffix of a video with a file per frame.
const frames = "_#"

var numbered = regexp.MustCompile(`^(.*)_[0-9]+$`)

// of returns the output name of an image with a suffix. It is always the same for a source.
func (n names) of(source, suffix string) string {
	return n.first(source, suffix, func(stem string) bool {
		if suffix != "" { // copies: one file per video
			return true
		}
		video := numbered.FindStringSubmatch(stem)
		return video == nil || n[video[1]+frames] == ""
	})
}

// ofVideo returns the name of a video with a file per frame, whose number follows the name. It is always the same for a source.
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

// reserved marks a name that collides with the frames of a video.
const reserved = "\x00"

// first returns the name of a source; a new source gets the first unused and free name.
func (n names) first(source, suffix string, free func(stem string) bool) string {
	stem := format.Stem(source)
	candidate := stem
	for number := 2; ; number++ {
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
		candidate = fmt.Sprintf("%s-%d", stem, number) // never the name of a video frame
	}
}

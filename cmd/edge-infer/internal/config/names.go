package config

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/edge-infer/edge-infer/capture"
)

// maxNameLength is the longest name in bytes: it becomes part of file names.
const maxNameLength = 100

// forbiddenInNames are characters that a level of a topic, or an address, cannot have.
const forbiddenInNames = "+/# "

var namedPattern = regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9_-]*)=(.+)$`)

// checkVisibleName returns the rule that a name violates, or "".
func checkVisibleName(name string) (want string) {
	switch {
	case strings.Trim(name, ".") == "": // a directory and a part of addresses is called that
		return "must be a name, of more than dots"
	case len(name) > maxNameLength:
		return fmt.Sprintf("must be a name of at most %d bytes, not %d", maxNameLength, len(name))
	case strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) || !utf8.ValidString(name):
		return "must be a name of characters that can be seen"
	}
	return ""
}

// checkCameraName returns the rule that a camera's name violates, or "".
func checkCameraName(name string) (want string) {
	if strings.ContainsAny(name, forbiddenInNames) {
		return "must be a name without + / # and spaces"
	}
	return checkVisibleName(name)
}

// splitNamed splits NAME=VALUE if the name consists of letters, digits, - and _.
func splitNamed(text string) (name, value string, ok bool) {
	match := namedPattern.FindStringSubmatch(text)
	if match == nil {
		return "", "", false
	}
	return match[1], match[2], true
}

// cutCameraName splits a camera's NAME=URI. Before something that is clearly an address, an invalid name is split off too and reported by
// its check; other texts with a = are paths, or addresses with a query.
func cutCameraName(text string) (name, uri string, ok bool) {
	if name, uri, ok = splitNamed(text); ok {
		return name, uri, true
	}
	if whole, err := capture.ParseURI(text); err != nil || whole.Kind != capture.File {
		return "", "", false
	}
	name, uri, ok = strings.Cut(text, "=")
	if !ok || name == "" || uri == "" || strings.Contains(name, "?") {
		return "", "", false
	}
	address, err := capture.ParseURI(uri)
	return name, uri, !strings.ContainsAny(name, forbiddenInNames) || err == nil && address.Kind != capture.File
}

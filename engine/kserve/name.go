package kserve

import (
	"path/filepath"
	"regexp"
	"strings"
)

var (
	modelName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*$`)
	strange   = regexp.MustCompile(`[^A-Za-z0-9_.-]`)
)

// IsModelName reports whether a model name is valid in a path and in a model repository.
func IsModelName(name string) bool { return modelName.MatchString(name) }

// ModelName returns the server's name for a model file: the file's name without extension, with _ for characters that are not allowed.
func ModelName(path string) string {
	base := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	return strings.TrimLeft(strange.ReplaceAllString(base, "_"), ".-")
}

package spool

import "strings"

// DirName returns a unique directory name for any name by escaping path separators and dots.
func DirName(name string) string {
	if strings.Trim(name, ".") == "" {
		return strings.ReplaceAll(name, ".", "%2E") + "_"
	}
	return strings.NewReplacer("%", "%25", "/", "%2F", "\x00", "%00").Replace(name)
}

package spool

import "strings"

// DirName makes one directory's name of any name, a different one for each: what could lead elsewhere is escaped.
func DirName(name string) string {
	if strings.Trim(name, ".") == "" {
		return strings.ReplaceAll(name, ".", "%2E") + "_"
	}
	return strings.NewReplacer("%", "%25", "/", "%2F", "\x00", "%00").Replace(name)
}

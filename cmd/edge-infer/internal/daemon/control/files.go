package control

import (
	"maps"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/internal/boundedfile"
)

// version distinguishes versions of a file; zero if there is none.
type version struct {
	modified time.Time
	size     int64
}

func stamp(path string) (s version) {
	if info, err := boundedfile.Stat(path); err == nil {
		s.modified, s.size = info.ModTime(), info.Size()
	}
	return s
}

// Files are the versions of files that are read when a part of a run opens, and not again later.
type Files map[string]version

// ConfigurationFiles are the versions of those that the settings come from.
func ConfigurationFiles(s *config.Sources) Files {
	all := Files{}
	paths, _ := s.Files() // reading them reports errors
	for _, path := range paths {
		all[path] = stamp(path)
	}
	return all
}

// stamps returns the versions of files.
func stamps(paths []string) Files {
	all := Files{}
	for _, path := range paths {
		all[path] = stamp(path)
	}
	return all
}

func (f Files) same(other Files) bool { return maps.Equal(f, other) }

// renewed reports whether a file has changed since.
func (f Files) renewed(path string) bool { return f[path] != stamp(path) }

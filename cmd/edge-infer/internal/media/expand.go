package media

import (
	"bufio"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/capture/source"
)

// listMark begins an input that is a list of files; listMark and a hyphen is the list that comes on standard input.
const listMark = "@"

// Expand lists the files of a directory, or those that a list names: @FILE has one path a line, from the working directory, and @- is
// standard input; a directory in a list stands for its files. Hidden files and what is below a directory's own directories are none of it.
// Anything else stands for itself.
func Expand(input string) ([]string, error) {
	path, list := strings.CutPrefix(input, listMark)
	if !list {
		return expandPath(input)
	}
	named, err := readList(path)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, path := range named {
		more, err := expandPath(path)
		if err != nil {
			return nil, fmt.Errorf("list of files %s: %w", input[len(listMark):], err)
		}
		files = append(files, more...)
	}
	return files, nil
}

// Nested reports whether an input is a directory with directories in it, whose files Expand leaves out.
func Nested(input string) bool {
	entries, err := os.ReadDir(input)
	return err == nil && slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.IsDir() && !hidden(e.Name()) })
}

func expandPath(input string) ([]string, error) {
	info, err := os.Stat(input)
	if err != nil || !info.IsDir() {
		return []string{input}, nil //nolint:nilerr // capture says what is wrong with it
	}
	entries, err := os.ReadDir(input)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, entry := range entries {
		path := filepath.Join(input, entry.Name())
		if source.IsMedia(path) && !hidden(entry.Name()) && regular(path, entry.Type()) {
			files = append(files, local(path))
		}
	}
	switch {
	case len(files) > 0:
		return files, nil
	case Nested(input):
		return nil, fmt.Errorf("%s: no image or video in this directory itself (name those in it, or list all files: "+
			"find %[1]s -name '*.jpg' | edge-infer infer @-)", input)
	}
	return nil, fmt.Errorf("%s: no image or video in this directory", input)
}

// hidden says of a name what ls does. Such files are often other programs' own, like the ._*.jpg of macOS, which are no images.
func hidden(name string) bool { return strings.HasPrefix(name, ".") }

// local is a path that is taken for nothing but a file, whatever its name looks like.
func local(path string) string {
	u, err := capture.ParseURI(path)
	if err == nil && u.Kind == capture.File && u.Address == path && u.FPS == 0 && !u.Loop {
		return path
	}
	return "." + string(filepath.Separator) + path
}

// regular says whether a file is one, or a link to one, as datasets are often made of, or to nothing.
func regular(path string, mode fs.FileMode) bool {
	if mode&fs.ModeSymlink != 0 {
		info, err := os.Stat(path)
		if err != nil {
			return true // reading it says what is wrong
		}
		mode = info.Mode()
	}
	return mode.IsRegular()
}

// byteOrderMark is what some editors begin a text with.
const byteOrderMark = "\ufeff"

// readList reads the paths of a list. Empty lines, spaces around a path and a byte order mark are none of it.
func readList(path string) ([]string, error) {
	file := os.Stdin
	if path != "-" {
		var err error
		if file, err = os.Open(path); err != nil {
			return nil, fmt.Errorf("list of files: %w", err)
		}
		defer file.Close()
	}
	files, err := lines(file)
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("no line names a file")
	}
	if err != nil {
		return nil, fmt.Errorf("list of files %s: %w", path, err)
	}
	return files, nil
}

func lines(from io.Reader) (files []string, err error) {
	for scanner := bufio.NewScanner(from); ; {
		if !scanner.Scan() {
			return files, scanner.Err()
		}
		if path := strings.TrimSpace(strings.TrimPrefix(scanner.Text(), byteOrderMark)); path != "" {
			files = append(files, path)
		}
	}
}

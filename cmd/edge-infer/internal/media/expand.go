package media

import (
	"bufio"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/capture/source"
)

// listMark is the prefix of an input that is a list of files; with a hyphen the list is read from standard input.
const listMark = "@"

// Expand returns the files of a directory or of a list: @FILE has one path per line, relative to the working directory, and @- is standard
// input; a directory in a list stands for its files. Hidden files and subdirectories are skipped. Any other input is returned as it is.
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

// Nested reports whether an input is a directory with subdirectories, whose files Expand skips.
func Nested(input string) bool {
	entries, err := os.ReadDir(input)
	return err == nil && slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.IsDir() && !hidden(e.Name()) })
}

func expandPath(input string) ([]string, error) {
	info, err := os.Stat(input)
	if err != nil || !info.IsDir() {
		return []string{input}, nil //nolint:nilerr // opening it reports the error
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
	if unread := source.Unread(input, false); unread != "" {
		return nil, fmt.Errorf("%s: no image or video of a format that is read in this directory, %s of others (convert them to JPEG or PNG)",
			input, unread)
	}
	return nil, fmt.Errorf("%s: no image or video in this directory", input)
}

// WarnUnread logs the images and videos of directories that are left out because of their format; nested includes subdirectories.
func WarnUnread(logger *slog.Logger, nested bool, directories ...string) {
	for i, directory := range directories {
		if slices.Contains(directories[:i], directory) {
			continue
		}
		if unread := source.Unread(directory, nested); unread != "" {
			logger.Warn("files of formats that are not read are left out", "directory", directory, "files", unread,
				"hint", "convert them to JPEG or PNG")
		}
	}
}

// hidden reports whether a file is hidden. Such files often belong to other programs, like the ._*.jpg of macOS, which are not images.
func hidden(name string) bool { return strings.HasPrefix(name, ".") }

// local returns a path that is parsed as a file whatever its name.
func local(path string) string {
	u, err := capture.ParseURI(path)
	if err == nil && u.Kind == capture.File && u.Address == path && u.FPS == 0 && !u.Loop {
		return path
	}
	return "." + string(filepath.Separator) + path
}

// regular reports whether a path is a regular file or a link to one. A broken link counts too, because reading it reports the error.
func regular(path string, mode fs.FileMode) bool {
	if mode&fs.ModeSymlink != 0 {
		info, err := os.Stat(path)
		if err != nil {
			return true
		}
		mode = info.Mode()
	}
	return mode.IsRegular()
}

// byteOrderMark is written by some editors at the start of a text.
const byteOrderMark = "\ufeff"

// readList reads the paths of a list. It ignores empty lines, surrounding spaces and a byte order mark.
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
		err = fmt.Errorf("empty list")
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

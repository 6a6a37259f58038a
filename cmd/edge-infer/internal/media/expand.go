package media

import (
	"bufio"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/edge-infer/edge-infer/capture/source"
)

// listMark begins an input that is a list of files; listMark and a hyphen is the list that comes on standard input.
const listMark = "@"

// Expand lists the files of a directory, or those that a list names: @FILE has one path a line, from the working directory, and @- is
// standard input. Anything else stands for itself.
func Expand(input string) ([]string, error) {
	if path, list := strings.CutPrefix(input, listMark); list {
		return readList(path)
	}
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
		if source.Readable(entry.Name()) && regular(path, entry.Type()) {
			files = append(files, path)
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s: no picture or video in this directory", input)
	}
	return files, nil
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

// readList reads the paths of a list. Empty lines and spaces around a path are none of it.
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
		if path := strings.TrimSpace(scanner.Text()); path != "" {
			files = append(files, path)
		}
	}
}

package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// merge changes c by the YAML in data. An unknown key is an error that names its line and the nearest known key.
func (c *Config) merge(path string, data []byte) error {
	next := *c
	file, err := parser.ParseBytes(data, 0)
	if err == nil {
		if empty(file) { // decoding nothing would clear everything
			return nil
		}
		err = yaml.NewDecoder(bytes.NewReader(data), yaml.Strict()).Decode(&next)
	}
	if err == nil || errors.Is(err, io.EOF) {
		*c = next
		return nil
	}
	line := 0
	var unknown *yaml.UnknownFieldError
	var positioned yaml.Error
	if errors.As(err, &positioned) && positioned.GetToken() != nil && positioned.GetToken().Position != nil {
		line = positioned.GetToken().Position.Line
	}
	message := firstLine(err)
	if errors.As(err, &unknown) && unknown.Token != nil {
		key := unknown.Token.Value
		message = fmt.Sprintf("unknown key %q", key)
		if near := Nearest(key, keys(reflect.TypeFor[Config]())); near != "" {
			message += fmt.Sprintf(", did you mean %q?", near)
		}
	} else if positioned != nil {
		message = positioned.GetMessage()
	}
	return fmt.Errorf("config %s line %d: %s", path, line, message)
}

// empty reports a file without a word but comments.
func empty(file *ast.File) bool {
	return !slices.ContainsFunc(file.Docs, func(doc *ast.DocumentNode) bool {
		return doc.Body != nil && doc.Body.Type() != ast.CommentType && doc.Body.Type() != ast.NullType
	})
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// keys lists every key that the file may hold, at any depth.
func keys(t reflect.Type) []string {
	var all []string
	for t.Kind() == reflect.Slice || t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("yaml"), ",")
		if name == "" || name == "-" {
			continue
		}
		all = append(all, name)
		all = append(all, keys(t.Field(i).Type)...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Nearest is the candidate with the smallest edit distance to word, or "" when none is close.
func Nearest(word string, candidates []string) string {
	best, found := len(word)/2+1, ""
	for _, candidate := range candidates {
		if d := distance(word, candidate); d < best {
			best, found = d, candidate
		}
	}
	return found
}

// distance is the Levenshtein distance.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

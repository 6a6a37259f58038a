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

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config/form"
	"github.com/edge-infer/edge-infer/engine/nesting"
)

// byteOrderMark is what editors of Windows begin a file with.
var byteOrderMark = []byte("\xef\xbb\xbf")

// merge changes c by the YAML in data and gives the line of every key in it. A file that does not fit changes nothing; its error is a
// *fileError with every mistake where the file is YAML at all.
func (c *Config) merge(path string, data []byte) (lines map[string]int, err error) {
	next := *c
	data = bytes.TrimPrefix(data, byteOrderMark)
	if err := nesting.CheckYAML(data); err != nil {
		return nil, fmt.Errorf("config %s: %w", path, err)
	}
	file, err := parser.ParseBytes(data, 0)
	if err == nil {
		if empty(file) { // decoding nothing would clear everything
			return nil, nil
		}
		var found []form.Misfit
		found, lines = form.Check(file, reflect.TypeFor[Config]())
		if len(found) > 0 {
			return nil, misfits(path, found)
		}
		err = yaml.NewDecoder(bytes.NewReader(data), yaml.Strict()).Decode(&next)
	}
	if err == nil || errors.Is(err, io.EOF) {
		*c = next
		return lines, nil
	}
	line, message := 0, firstLine(err)
	var positioned yaml.Error
	if errors.As(err, &positioned) {
		message = positioned.GetMessage()
		if token := positioned.GetToken(); token != nil && token.Position != nil {
			line = token.Position.Line
		}
	}
	return nil, fmt.Errorf("config %s line %d: %s", path, line, message)
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

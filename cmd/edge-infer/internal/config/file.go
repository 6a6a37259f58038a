package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/edge-infer/edge-infer/internal/boundedfile"
	"github.com/edge-infer/edge-infer/internal/redact"
	"github.com/edge-infer/edge-infer/internal/yamldepth"
)

// maxFile limits a file in bytes. Reading one takes up to 400 times its size in memory, most of it for a moment; a camera takes 0.3 KB, and
// 5 KB with many zones.
const maxFile = 512 << 10

// byteOrderMark begins files of some Windows editors.
var byteOrderMark = []byte("\xef\xbb\xbf")

// merged puts the files over the built-in values, as they stand.
func (s *Sources) merged() *layers {
	l := &layers{Config: s.Scope.defaults(), lookup: s.lookup(), at: places{}}
	paths, err := s.Files()
	if err != nil {
		l.wrong(location{}, err)
	}
	for i, path := range paths {
		l.file(location{source: i + 1, name: path})
	}
	return l
}

// file applies a file over the earlier sources, as far as it can be read.
func (l *layers) file(whole location) {
	cameras, cascade, webhooks := l.Cameras, l.Cascade, l.Webhooks
	before := map[string]int{"cameras": len(cameras), "cascade": len(cascade), "webhooks": len(webhooks)}
	key := func(own string) string { return shifted(own, before) }
	l.Cameras, l.Cascade, l.Webhooks = nil, nil, nil
	data, err := boundedfile.Read(whole.name, maxFile)
	switch {
	case errors.Is(err, fs.ErrPermission):
		err = fmt.Errorf("config: %w (sudo, or be in the group that may read it)", err)
	case err != nil:
		err = fmt.Errorf("config: %w", err)
	}
	if err != nil {
		l.unread = true
		l.wrong(location{source: whole.source}, err)
	} else {
		lines, found, err := l.merge(data)
		for own, line := range lines {
			l.at[key(own)] = location{whole.source, whole.name, line}
		}
		for i := range found {
			entry := &found[i]
			l.wrong(location{whole.source, whole.name, entry.Line}, entry.describe(), key(entry.Key))
			if other := entry.intended(); lines[other] == 0 {
				l.unreadKeys = append(l.unreadKeys, key(other))
			}
		}
		for _, entry := range cutAddresses(data) {
			var cut []string
			for own, line := range lines {
				if line == entry.Line {
					cut = append(cut, key(own))
				}
			}
			l.wrong(location{whole.source, whole.name, entry.Line}, entry.describe(), cut...)
		}
		if err != nil {
			l.unread = true
			if len(found) == 0 { // else it may be of an anchor that was taken out
				l.wrong(locationOf(err, whole), message(err))
			}
		}
	}
	l.Cameras, l.Cascade = slices.Concat(cameras, l.Cameras), slices.Concat(cascade, l.Cascade)
	l.Webhooks = slices.Concat(webhooks, l.Webhooks)
}

// merge applies the YAML in data to c. It returns the line of every key and the values of a wrong form, which are skipped. An error means
// that the text is no YAML or has unresolvable references; then nothing has changed.
func (c *Config) merge(data []byte) (lines map[string]int, found []yamlError, err error) {
	data = bytes.TrimPrefix(data, byteOrderMark)
	if err := yamldepth.Check(data); err != nil {
		return nil, nil, err
	}
	file, err := parser.ParseBytes(data, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, nil, err
	}
	switch documents(file) {
	case 0: // decoding nothing would clear everything
		return nil, nil, nil
	case 1:
	default:
		return nil, nil, errors.New("has more than one YAML document: only one is read, remove the others and their ---")
	}
	merged := resolveMerges(file)
	found, lines, body := checkYAML(file, reflect.TypeFor[Config]())
	next := *c
	switch {
	case len(found) == 0 && !merged:
		err = yaml.NewDecoder(bytes.NewReader(data), yaml.Strict()).Decode(&next)
	case body != nil:
		err = yaml.NodeToValue(body, &next, yaml.Strict())
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return lines, found, err
	}
	*c = next
	return lines, found, nil
}

// documents returns the number of YAML documents that are not empty, apart from comments.
func documents(file *ast.File) (count int) {
	for _, doc := range file.Docs {
		if doc.Body != nil && doc.Body.Type() != ast.CommentType && doc.Body.Type() != ast.NullType {
			count++
		}
	}
	return count
}

// locationOf returns at with the line of an error of the YAML library.
func locationOf(err error, at location) location {
	var positioned yaml.Error
	if errors.As(err, &positioned) && positioned.GetToken() != nil && positioned.GetToken().Position != nil {
		at.line = positioned.GetToken().Position.Line
	}
	return at
}

// message returns an error of the YAML library without the excerpt of the file that it contains.
func message(err error) error {
	var positioned yaml.Error
	if errors.As(err, &positioned) {
		return errors.New(redact.Text(positioned.GetMessage()))
	}
	line, _, _ := strings.Cut(err.Error(), "\n")
	return errors.New(redact.Text(line))
}

// shifted returns the path of a key in the whole configuration, after so many elements of lists in earlier files.
func shifted(key string, counts map[string]int) string {
	for name, before := range counts {
		rest, found := strings.CutPrefix(key, name+"[")
		number, rest, closed := strings.Cut(rest, "]")
		var i int
		if _, err := fmt.Sscan(number, &i); found && closed && err == nil {
			return fmt.Sprintf("%s[%d]%s", name, before+i, rest)
		}
	}
	return key
}

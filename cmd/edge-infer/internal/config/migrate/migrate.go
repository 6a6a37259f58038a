// Package migrate renames keys and variables of earlier versions in configuration files. Everything else stays byte for byte: order,
// comments, spaces.
package migrate

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/internal/atomicfile"
	"github.com/edge-infer/edge-infer/internal/yamldepth"
)

// Change is one replaced name.
type Change struct {
	Line int    `json:"line"` // of the original file
	Once string `json:"once"`
	Now  string `json:"now"`
}

// String describes the change in one line.
func (c Change) String() string { return fmt.Sprintf("line %d: %s is now %s", c.Line, c.Once, c.Now) }

// BackupSuffix is appended to the name of the original file.
const BackupSuffix = ".before-migrate"

// File migrates a configuration file, or one that sets EDGE_INFER_* variables such as a systemd drop-in or a compose file. If something
// changes and write is set, the original is kept beside it; mode and owner stay.
func File(path string, write bool) ([]Change, error) {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	was, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	now, changes, err := Text(was)
	if err != nil {
		return nil, fmt.Errorf("config %s %w", path, err)
	}
	if len(changes) == 0 || !write {
		return changes, nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	backup := path + BackupSuffix
	if _, err := os.Lstat(backup); err == nil {
		return nil, fmt.Errorf("config %s: there is a copy already (move %s away)", path, backup)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("config: %w", err)
	}
	for _, file := range []struct {
		path string
		data []byte
	}{{backup, was}, {path, now}} {
		if err := replace(file.path, file.data, info); err != nil {
			return nil, fmt.Errorf("config: %w", err)
		}
	}
	return changes, nil
}

// replace writes a file with mode and owner of another file.
func replace(path string, data []byte, like fs.FileInfo) error {
	file, err := atomicfile.Create(path, like.Mode().Perm())
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if owner, ok := like.Sys().(*syscall.Stat_t); ok && err == nil && (int(owner.Uid) != os.Geteuid() || int(owner.Gid) != os.Getegid()) {
		err = file.Chown(int(owner.Uid), int(owner.Gid))
	}
	if err == nil {
		err = file.Commit()
	}
	return errors.Join(err, file.Close())
}

// Text migrates the text of a file. Its errors begin with the line.
func Text(was []byte) (now []byte, changes []Change, err error) {
	now, changes = variables(was)
	now, renamed, err := keys(now)
	if err != nil {
		return nil, nil, err
	}
	changes = append(changes, renamed...)
	for _, doc := range documents(now) {
		value := scalarAt(doc.Body, config.RenamedWebKey)
		if value == nil {
			continue
		}
		line := value.Key.GetToken().Position.Line
		once := config.RenamedKey{Key: config.RenamedWebKey, Now: "web.listen"}
		next, err := nested(now, value, once)
		if err != nil {
			return nil, nil, fmt.Errorf("line %d: %w", line, err)
		}
		now = next
		changes = append(changes, Change{line, once.Key, once.Now})
	}
	return now, changes, nil
}

// keys replaces the last part of each renamed key in place. Only the first document of a file is a configuration.
func keys(text []byte) ([]byte, []Change, error) {
	docs := documents(text)
	if len(docs) == 0 {
		return text, nil, nil
	}
	former := map[string]string{}
	for _, key := range config.RenamedKeys() {
		if key.Key != config.RenamedWebKey {
			former[key.Key] = key.Now
		}
	}
	lines := strings.SplitAfter(string(text), "\n")
	var changes []Change
	err := walk(docs[0].Body, "", func(path string, key ast.MapKeyNode) error {
		now, renamed := former[path]
		if !renamed {
			return nil
		}
		last := func(key string) string { return key[strings.LastIndex(key, ".")+1:] }
		at := key.GetToken().Position
		line := lines[at.Line-1]
		start := at.Column - 1
		if start > len(line) || !strings.HasPrefix(line[start:], last(path)) {
			return fmt.Errorf("line %d: %s is written in a way that only a person can change: name it %s", at.Line, path, now)
		}
		changes = append(changes, Change{at.Line, path, now})
		lines[at.Line-1] = line[:start] + last(now) + line[start+len(last(path)):]
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	slices.SortStableFunc(changes, func(a, b Change) int { return cmp.Compare(a.Line, b.Line) })
	return []byte(strings.Join(lines, "")), changes, nil
}

// walk calls visit for each key below node with its path, the last key of a line first, so that replacing one does not move the others.
func walk(node ast.Node, path string, visit func(path string, key ast.MapKeyNode) error) error {
	switch n := node.(type) {
	case *ast.AnchorNode:
		return walk(n.Value, path, visit)
	case *ast.SequenceNode:
		for _, value := range slices.Backward(n.Values) {
			if err := walk(value, path+"[]", visit); err != nil {
				return err
			}
		}
	case *ast.MappingNode:
		for _, value := range slices.Backward(n.Values) {
			if err := walk(value, path, visit); err != nil {
				return err
			}
		}
	case *ast.MappingValueNode:
		at := strings.TrimPrefix(path+"."+n.Key.GetToken().Value, ".")
		if err := walk(n.Value, at, visit); err != nil {
			return err
		}
		return visit(at, n.Key)
	}
	return nil
}

// documents returns the documents of a YAML file, nil for any other file, which can only contain variables.
func documents(text []byte) []*ast.DocumentNode {
	if yamldepth.Check(text) != nil {
		return nil
	}
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		return nil
	}
	return file.Docs
}

// variables replaces the names of variables wherever they occur as words.
func variables(text []byte) ([]byte, []Change) {
	former := config.FormerVariables()
	word := regexp.MustCompile(`\bEDGE_INFER_[A-Z_]+\b`)
	var now strings.Builder
	var changes []Change
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		now.WriteString(word.ReplaceAllStringFunc(line, func(name string) string {
			if to := former[name]; to != "" {
				changes = append(changes, Change{number, name, to})
				return to
			}
			return name
		}))
	}
	return []byte(now.String()), changes
}

// scalarAt returns the top-level entry of a key if its value is a plain scalar.
func scalarAt(body ast.Node, key string) *ast.MappingValueNode {
	var values []*ast.MappingValueNode
	switch n := body.(type) {
	case *ast.MappingNode:
		values = n.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{n}
	}
	for _, value := range values {
		if scalar, plain := value.Value.(ast.ScalarNode); plain && value.Key.GetToken().Value == key && scalar.Type() != ast.NullType {
			return value
		}
	}
	return nil
}

// nested moves the value of a key into a section of that name: web: A becomes web: with listen: A on its own line. The result is compared
// with the original.
func nested(text []byte, value *ast.MappingValueNode, once config.RenamedKey) ([]byte, error) {
	byHand := fmt.Errorf("%s is written in a way that only a person can change: name it %s", once.Key, once.Now)
	_, inner, _ := strings.Cut(once.Now, ".")
	lines := strings.SplitAfter(string(text), "\n")
	at := value.Key.GetToken().Position.Line - 1
	start, _, _ := strings.Cut(lines[at], once.Key)
	rest, found := strings.CutPrefix(lines[at], start+once.Key+":")
	if !found || strings.TrimSpace(start) != "" {
		return nil, byHand
	}
	lines[at] = start + once.Key + ":\n" + start + "  " + inner + ":" + rest
	now := []byte(strings.Join(lines, ""))
	var before, after map[string]any
	if yaml.Unmarshal(text, &before) != nil || yaml.Unmarshal(now, &after) != nil {
		return nil, byHand
	}
	before[once.Key] = map[string]any{inner: before[once.Key]}
	if !reflect.DeepEqual(before, after) {
		return nil, byHand
	}
	return now, nil
}

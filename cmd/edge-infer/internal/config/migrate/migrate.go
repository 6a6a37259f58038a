// Package migrate writes configuration files anew in which settings have names that they had once. All else stays as it is, to the byte:
// order, comments, spaces.
package migrate

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"syscall"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/engine/atomicfile"
	"github.com/edge-infer/edge-infer/engine/nesting"
)

// Change is one name that was replaced.
type Change struct {
	Line int    `json:"line"` // of the file as it was
	Once string `json:"once"`
	Now  string `json:"now"`
}

// String says it in a line.
func (c Change) String() string { return fmt.Sprintf("line %d: %s is %s now", c.Line, c.Once, c.Now) }

// BackupSuffix is what the name of a file's copy ends with.
const BackupSuffix = ".before-migrate"

// File migrates a file: a configuration, or one that sets EDGE_INFER_* variables, such as a drop-in of systemd or a compose file. Where
// something changes, and write is set, the file as it was is kept beside it; mode and owner stay.
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

// replace writes a file with the mode and the owner of another.
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
	for _, once := range config.FormerKeys() {
		for _, doc := range documents(now) {
			value := scalarAt(doc.Body, once.Key)
			if value == nil {
				continue
			}
			line := value.Key.GetToken().Position.Line
			next, err := nested(now, value, once)
			if err != nil {
				return nil, nil, fmt.Errorf("line %d: %w", line, err)
			}
			now = next
			changes = append(changes, Change{line, once.Key, once.Now})
		}
	}
	return now, changes, nil
}

// documents are those of a YAML file, none of another: that has variables alone.
func documents(text []byte) []*ast.DocumentNode {
	if nesting.CheckYAML(text) != nil {
		return nil
	}
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		return nil
	}
	return file.Docs
}

// variables replaces the names of variables, wherever they stand as words.
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

// scalarAt is the entry of that key at the top, when it is a plain value.
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

// nested puts a key between another and its value: web: A becomes web: with listen: A on a line of its own. What the file then says is
// compared with what it said.
func nested(text []byte, value *ast.MappingValueNode, once config.FormerKey) ([]byte, error) {
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

package config

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/spelling"
)

// misfits finds what of a file does not fit the configuration in form: unknown keys and values of another kind, each with its line.
type misfits struct {
	path  string // of the file
	found []error
	lines map[string]int // of every key, by its path as in detect.max or cameras[0].uri
}

// fileError is every mistake of a file; as an error of a run it tells the first one.
type fileError struct{ mistakes []error }

func (e *fileError) Error() string {
	text := e.mistakes[0].Error()
	if more := len(e.mistakes) - 1; more > 0 {
		text += fmt.Sprintf(" (and %d more: edge-infer config check tells all)", more)
	}
	return text
}

// documents looks through a file. Only the first document counts, as it does for the decoder.
func (m *misfits) documents(file *ast.File) {
	m.lines = map[string]int{}
	for _, document := range file.Docs {
		if document.Body != nil {
			m.node(document.Body, reflect.TypeFor[Config](), "")
			return
		}
	}
}

func (m *misfits) node(node ast.Node, t reflect.Type, key string) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	group := t.Kind() == reflect.Struct || t.Kind() == reflect.Map
	switch n := node.(type) {
	case *ast.NullNode, *ast.CommentGroupNode, *ast.AliasNode: // left to the decoder
		return
	case *ast.AnchorNode:
		if n.Value != nil {
			m.node(n.Value, t, key)
		}
		return
	case *ast.TagNode:
		if !group && t.Kind() != reflect.Slice {
			return
		}
		if n.Value != nil { // the decoder does not survive a tagged scalar where a list belongs
			m.node(n.Value, t, key)
			return
		}
	case *ast.MappingNode:
		if group {
			for _, value := range n.Values {
				m.value(value, t, key)
			}
			return
		}
	case *ast.MappingValueNode:
		if group {
			m.value(n, t, key)
			return
		}
	case *ast.SequenceNode:
		if t.Kind() == reflect.Slice {
			for i, value := range n.Values {
				at := fmt.Sprintf("%s[%d]", key, i)
				m.lines[at] = line(value)
				m.node(value, t.Elem(), at)
			}
			return
		}
	}
	if group || t.Kind() == reflect.Slice || yaml.NodeToValue(node, reflect.New(t).Interface(), yaml.Strict()) != nil {
		key = strings.TrimPrefix(key, ".")
		m.tell(node, "%s %w%s", key, must(shown(node), "must be "+kind(t)), migratable(key))
	}
}

// value looks at one key of a mapping, and what is below it.
func (m *misfits) value(value *ast.MappingValueNode, t reflect.Type, key string) {
	if value.Key.IsMergeKey() {
		return
	}
	name := value.Key.GetToken().Value
	at := strings.TrimPrefix(key+"."+name, ".")
	m.lines[at] = line(value.Key)
	if t.Kind() == reflect.Map {
		m.node(value.Value, t.Elem(), at)
		return
	}
	for i := range t.NumField() {
		if tag, _, _ := strings.Cut(t.Field(i).Tag.Get("yaml"), ","); tag == name && tag != "-" {
			m.node(value.Value, t.Field(i).Type, at)
			return
		}
	}
	message := fmt.Sprintf("unknown key %q", name)
	if near := spelling.Nearest(name, keys(reflect.TypeFor[Config]())); near != "" {
		message += fmt.Sprintf(", did you mean %q?", near)
	}
	m.tell(value.Key, "%s", message)
}

func (m *misfits) tell(node ast.Node, format string, arguments ...any) {
	m.found = append(m.found, fmt.Errorf("config %s line %d: %w", m.path, line(node), fmt.Errorf(format, arguments...)))
}

func line(node ast.Node) int {
	if token := node.GetToken(); token != nil && token.Position != nil {
		return token.Position.Line
	}
	return 0
}

// shown is a value as it may be told: on one line and not for long.
func shown(node ast.Node) string {
	text := strings.Join(strings.Fields(node.String()), " ")
	if runes := []rune(text); len(runes) > 40 {
		text = string(runes[:40]) + "..."
	}
	return strings.Trim(text, `"'`)
}

// kind says in words what values of a type are.
func kind(t reflect.Type) string {
	if t == reflect.TypeFor[time.Duration]() {
		return "a time like 5s or 1m30s"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64, reflect.Uint64, reflect.Int32:
		return "a whole number"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Slice:
		return "a list, as in [a, b] or on lines that begin with -"
	case reflect.Struct, reflect.Map:
		return "a group of settings on indented lines of their own"
	default:
		return "one piece of text"
	}
}

// CheckFile reads a file as run would, without flags, and gives every mistake that can be told without opening anything, with its line
// where the file has one.
func CheckFile(path string) (*Config, []error) {
	s := Sources{File: path}
	c, err := s.read()
	if file := new(fileError); errors.As(err, &file) {
		return nil, file.mistakes
	}
	if err != nil {
		return nil, []error{err}
	}
	found := c.mistakes(Everything())
	var places places
	if len(found) > 0 {
		places, _ = s.files(Default(), os.LookupEnv) // nothing new can be wrong
	}
	told := make([]error, len(found))
	for i, mistake := range found {
		told[i] = fmt.Errorf("%s: %w", places.of(mistake.key, path), mistake)
	}
	return c, told
}

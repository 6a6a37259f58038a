// Package form finds what of a YAML file does not fit a structure in form: unknown keys and values of another kind, each with its line, in
// words of the file.
package form

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/spelling"
)

// Misfit is one of them.
type Misfit struct {
	Line int
	Key  string // path as in detect.max or cameras[0].uri; the bare name of an unknown key
	// Value is what stands there and Want what kind of value belongs there; Want is empty for an unknown key, of which Near is the key that
	// was perhaps meant.
	Value, Want, Near string
}

// Check looks through a file that is to fill a value of type t, a structure with yaml tags, and gives the line of every key by its path.
// Only the first document counts, as it does for the decoder.
func Check(file *ast.File, t reflect.Type) (found []Misfit, lines map[string]int) {
	l := look{whole: t, lines: map[string]int{}}
	for _, document := range file.Docs {
		if document.Body != nil {
			l.node(document.Body, t, "")
			break
		}
	}
	return l.found, l.lines
}

// look is one way through a file.
type look struct {
	whole reflect.Type
	found []Misfit
	lines map[string]int
}

func (l *look) node(node ast.Node, t reflect.Type, key string) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	group := t.Kind() == reflect.Struct || t.Kind() == reflect.Map
	switch n := node.(type) {
	case *ast.NullNode, *ast.CommentGroupNode, *ast.AliasNode: // left to the decoder
		return
	case *ast.AnchorNode:
		if n.Value != nil {
			l.node(n.Value, t, key)
		}
		return
	case *ast.TagNode:
		if !group && t.Kind() != reflect.Slice {
			return
		}
		if n.Value != nil { // the decoder does not survive a tagged scalar where a list belongs
			l.node(n.Value, t, key)
			return
		}
	case *ast.MappingNode:
		if group {
			for _, value := range n.Values {
				l.value(value, t, key)
			}
			return
		}
	case *ast.MappingValueNode:
		if group {
			l.value(n, t, key)
			return
		}
	case *ast.SequenceNode:
		if t.Kind() == reflect.Slice {
			for i, value := range n.Values {
				at := fmt.Sprintf("%s[%d]", key, i)
				l.lines[at] = line(value)
				l.node(value, t.Elem(), at)
			}
			return
		}
	}
	if group || t.Kind() == reflect.Slice || yaml.NodeToValue(node, reflect.New(t).Interface(), yaml.Strict()) != nil {
		l.found = append(l.found, Misfit{Line: line(node), Key: strings.TrimPrefix(key, "."), Value: shown(node), Want: kind(t)})
	}
}

// value looks at one key of a mapping, and what is below it.
func (l *look) value(value *ast.MappingValueNode, t reflect.Type, key string) {
	if value.Key.IsMergeKey() {
		return
	}
	name := value.Key.GetToken().Value
	at := strings.TrimPrefix(key+"."+name, ".")
	l.lines[at] = line(value.Key)
	if t.Kind() == reflect.Map {
		l.node(value.Value, t.Elem(), at)
		return
	}
	for i := range t.NumField() {
		if tag, _, _ := strings.Cut(t.Field(i).Tag.Get("yaml"), ","); tag == name && tag != "-" {
			l.node(value.Value, t.Field(i).Type, at)
			return
		}
	}
	l.found = append(l.found, Misfit{Line: line(value.Key), Key: name, Near: spelling.Nearest(name, keys(l.whole))})
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

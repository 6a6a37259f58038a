package config

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/edge-infer/edge-infer/internal/redact"
	"github.com/edge-infer/edge-infer/internal/spelling"
	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
)

// yamlError is an entry of a file that does not fit the structure: an unknown or repeated key, or a value of the wrong kind.
type yamlError struct {
	Line int
	Key  string // path as in detect.max_detections or cameras[0].uri
	// Value is the value found and Want the expected kind.
	Value, Want string
	// Unknown is the name of an unknown key and Near a known name that is similar.
	Unknown, Near string
	// Elsewhere is the path of the only key with the unknown name: the indentation is wrong, or the group is missing.
	Elsewhere string
	// First is the line of the first occurrence of a repeated key; otherwise 0.
	First int
	// Comment means that a comment begins within an address.
	Comment bool
}

// describe returns the error with a remedy.
func (m *yamlError) describe() error {
	key, unknown := withoutUser(m.Key), withoutUser(m.Unknown)
	switch {
	case m.Comment:
		return errors.New("an address ends before \" #\", which begins a comment: put the address in quotation marks")
	case m.Want != "":
		return fmt.Errorf("%s %w", key, must(m.Value, "must be "+m.Want))
	case m.First != 0:
		return fmt.Errorf("%s is set already on line %d: keep one of them", key, m.First)
	}
	hint := ""
	switch {
	case m.Elsewhere != "":
		hint = " here, it is " + m.Elsewhere
	case m.Near != "":
		hint = fmt.Sprintf(", did you mean %q?", m.Near)
	}
	return fmt.Errorf("unknown key %q%s", unknown, hint)
}

// withoutUser returns the name of a key for an error message. What YAML takes for a key may be the second half of an address.
func withoutUser(key string) string {
	if at := strings.LastIndexByte(key, '@'); at >= 0 {
		return redact.Hidden + key[at:]
	}
	return redact.Text(key)
}

// cutAddress matches an unquoted address with a password that a comment cuts off.
var cutAddress = regexp.MustCompile(`://[^\s"'@/]*:[^"'@]*\s#[^\s"']*@`)

// cutAddresses returns an error for each address that a comment cuts off. What is left of it may be a valid address with a part of the
// password as its port.
func cutAddresses(data []byte) (found []yamlError) {
	number := 0
	for line := range strings.Lines(string(data)) {
		number++
		if cutAddress.MatchString(line) && !strings.HasPrefix(strings.TrimSpace(line), "#") {
			found = append(found, yamlError{Line: number, Comment: true})
		}
	}
	return found
}

// intended returns the path of the key that an unknown one is similar to.
func (m *yamlError) intended() string {
	if m.Near == "" {
		return m.Key
	}
	return strings.TrimSuffix(m.Key, m.Unknown) + m.Near
}

// checkYAML compares a file with type t, a structure with yaml tags, and returns the line of every key by its path. Entries that do not fit
// are removed from the file, so that the rest can be decoded; in a list, null replaces them. body is the first document, which is the only
// one that the decoder reads, or nil if there is none.
func checkYAML(file *ast.File, t reflect.Type) (found []yamlError, lines map[string]int, body ast.Node) {
	l := yamlCheck{whole: t, lines: map[string]int{}, reported: map[ast.Node]bool{}}
	for _, document := range file.Docs {
		if document.Body != nil {
			if l.fits(document.Body, t, "") {
				body = document.Body
			}
			break
		}
	}
	return l.found, l.lines, body
}

// yamlCheck is the state of one check of a file.
type yamlCheck struct {
	whole    reflect.Type
	found    []yamlError
	lines    map[string]int
	reported map[ast.Node]bool // what is merged into several mappings is reported once
}

// report adds an error about a node.
func (l *yamlCheck) report(node ast.Node, found yamlError) {
	if !l.reported[node] {
		l.reported[node] = true
		l.found = append(l.found, found)
	}
}

// fits reports whether a node can fill a value of type t, after the entries below it that do not fit were removed.
func (l *yamlCheck) fits(node ast.Node, t reflect.Type, key string) bool {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	group := t.Kind() == reflect.Struct || t.Kind() == reflect.Map
	switch n := node.(type) {
	case *ast.NullNode, *ast.CommentGroupNode, *ast.AliasNode: // left to the decoder
		return true
	case *ast.AnchorNode:
		return n.Value == nil || l.fits(n.Value, t, key)
	case *ast.TagNode:
		if !group && t.Kind() != reflect.Slice {
			return true
		}
		if n.Value != nil { // the decoder does not survive a tagged scalar where a list belongs
			return l.fits(n.Value, t, key)
		}
	case *ast.MappingNode:
		if group {
			n.Values = slices.DeleteFunc(n.Values, func(value *ast.MappingValueNode) bool { return !l.valueFits(value, t, key) })
			return true
		}
	case *ast.MappingValueNode:
		if group {
			return l.valueFits(n, t, key)
		}
	case *ast.SequenceNode:
		if t.Kind() == reflect.Slice {
			for i, value := range n.Values {
				at := fmt.Sprintf("%s[%d]", key, i)
				l.lines[at] = nodeLine(value)
				if !l.fits(value, t.Elem(), at) {
					n.Values[i] = ast.Null(value.GetToken())
				}
			}
			return true
		}
	}
	if group || t.Kind() == reflect.Slice || yaml.NodeToValue(node, reflect.New(t).Interface(), yaml.Strict()) != nil {
		l.report(node, yamlError{Line: nodeLine(node), Key: strings.TrimPrefix(key, "."), Value: nodeText(node), Want: kindName(t)})
		return false
	}
	return true
}

// valueFits checks one key of a mapping and everything below it.
func (l *yamlCheck) valueFits(value *ast.MappingValueNode, t reflect.Type, key string) bool {
	if value.Key.IsMergeKey() {
		return true
	}
	name := value.Key.GetToken().Value
	at := strings.TrimPrefix(key+"."+name, ".")
	if first, twice := l.lines[at]; twice {
		l.report(value, yamlError{Line: nodeLine(value.Key), Key: at, First: first})
		return false
	}
	l.lines[at] = nodeLine(value.Key)
	if t.Kind() == reflect.Map {
		return l.fits(value.Value, t.Elem(), at)
	}
	var here []string
	for i := range t.NumField() {
		tag, _, _ := strings.Cut(t.Field(i).Tag.Get("yaml"), ",")
		if tag == name && tag != "-" {
			return l.fits(value.Value, t.Field(i).Type, at)
		}
		if tag != "" && tag != "-" {
			here = append(here, tag)
		}
	}
	unknown := yamlError{Line: nodeLine(value.Key), Key: at, Unknown: name}
	words := spelling.Keys()
	switch path := keyPath(l.whole, name, key); {
	case path != "" && !words.Has(name):
		unknown.Elsewhere = path
	default:
		unknown.Near = words.Suggest(name, here)
	}
	l.report(value, unknown)
	return false
}

func nodeLine(node ast.Node) int {
	if token := node.GetToken(); token != nil && token.Position != nil {
		return token.Position.Line
	}
	return 0
}

// nodeText returns a value for an error message: on one line and abbreviated.
func nodeText(node ast.Node) string {
	text := redact.Text(strings.Join(strings.Fields(node.String()), " "))
	if runes := []rune(text); len(runes) > 40 {
		text = string(runes[:40]) + "..."
	}
	return strings.Trim(text, `"'`)
}

// Kinds of values in messages.
const (
	wholeNumberKind = "a whole number"
	numberKind      = "a number"
	timeKind        = "a time like 5s or 1m30s"
)

// kindName describes the values of a type.
func kindName(t reflect.Type) string {
	if t == reflect.TypeFor[time.Duration]() {
		return timeKind
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64, reflect.Uint64, reflect.Int32:
		return wholeNumberKind
	case reflect.Float32, reflect.Float64:
		return numberKind
	case reflect.Slice:
		return "a list, as in [a, b] or on lines that begin with -"
	case reflect.Struct, reflect.Map:
		return "a group of settings on indented lines of their own"
	default:
		return "one piece of text"
	}
}

// keyPath returns the path of the key of that name that belongs below a mapping, or of the only one in the file, with [] after lists. A key
// in a list counts if there is no other. It returns "" if there is none, or no telling which.
func keyPath(t reflect.Type, name, mapping string) string {
	mapping = indices.ReplaceAllString(mapping, "[]") + "."
	var single, listed []string
	for _, path := range keyPaths(t, name, "") {
		if mapping != "." && strings.HasPrefix(path, mapping) {
			return path
		}
		if strings.Contains(path, "[]") {
			listed = append(listed, path)
		} else {
			single = append(single, path)
		}
	}
	if len(single) == 0 {
		single = listed
	}
	if len(single) != 1 {
		return ""
	}
	return single[0]
}

// indices matches the positions in lists in the path of a key.
var indices = regexp.MustCompile(`\[\d+\]`)

// keyPaths returns the paths of all keys of a name below the prefix.
func keyPaths(t reflect.Type, name, prefix string) (paths []string) {
	for t.Kind() == reflect.Slice || t.Kind() == reflect.Pointer {
		if t.Kind() == reflect.Slice {
			prefix += "[]"
		}
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	for i := range t.NumField() {
		tag, _, _ := strings.Cut(t.Field(i).Tag.Get("yaml"), ",")
		if tag == "" || tag == "-" {
			continue
		}
		path := strings.TrimPrefix(prefix+"."+tag, ".")
		if tag == name {
			paths = append(paths, path)
		}
		paths = append(paths, keyPaths(t.Field(i).Type, name, path)...)
	}
	return paths
}

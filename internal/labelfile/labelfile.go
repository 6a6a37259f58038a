// Package labelfile reads files of class names: one name per line, or a list or map in YAML or JSON.
package labelfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/internal/yamldepth"
)

// maxSize bounds a file in bytes: 65,536 names of 64 bytes.
const maxSize = 4 << 20

// maxName bounds a name in bytes.
const maxName = 1 << 10

// maxYAML bounds what is parsed as YAML, which takes long.
const maxYAML = 1 << 20

// Read reads the class names in the order of the class numbers. The file has
//   - one name per line. Blanks around a name, a byte-order mark, empty lines at the end and lines that start with "# " are dropped. An
//     empty line before the last name is an error, because it would shift or lose a class.
//   - or YAML or JSON: a list of names, a map from class numbers to names or from names to class numbers, or a map that has one of these as
//     names, id2label or label2id, such as an Ultralytics data.yaml.
//
// Other files are refused as what they are. The error is one line.
func Read(r io.Reader) ([]string, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxSize+1))
	if err != nil {
		return nil, fmt.Errorf("labels: %w", err)
	}
	if len(text) > maxSize {
		return nil, fmt.Errorf("labels: over %d bytes are no list of class names", maxSize)
	}
	if kind := foreign(text); kind != "" {
		return nil, fmt.Errorf("labels: the file is %s (one class name per line, YAML and JSON are read)", kind)
	}
	text = bytes.TrimPrefix(text, []byte("\uFEFF"))
	text = lineEnd.ReplaceAll(text, []byte("\n"))
	list := strings.Split(string(text), "\n")
	if !structured(list) {
		return lines(list)
	}
	value, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("labels: %w", err)
	}
	names, err := namesOf(value)
	if err != nil {
		return nil, fmt.Errorf("labels: %w", err)
	}
	return names, nil
}

// foreign names a format that is no list of names; empty for none.
func foreign(text []byte) string {
	start := strings.ToLower(string(bytes.TrimSpace(text[:min(len(text), 512)])))
	switch {
	case bytes.HasPrefix(text, []byte("\xff\xfe")), bytes.HasPrefix(text, []byte("\xfe\xff")):
		return "UTF-16: save it as UTF-8"
	case bytes.IndexByte(text, 0) >= 0:
		return "not text"
	case strings.HasPrefix(start, "<?xml"), strings.HasPrefix(start, "<!doctype"), strings.HasPrefix(start, "<html"):
		return "XML or HTML"
	case pbtxt.MatchString(start):
		return "a label map of TensorFlow (.pbtxt)"
	case darknet.Match(text):
		return "a .data file of Darknet: give the file that it has as names"
	}
	return ""
}

var (
	// lineEnd is one of Unix, Windows and the old Macintosh, which has no line feed.
	lineEnd = regexp.MustCompile(`\r*\n|\r`)
	pbtxt   = regexp.MustCompile(`^item\s*[:{]`)
	darknet = regexp.MustCompile(`(?m)^\s*names\s*=`)
	key     = regexp.MustCompile(`^["']?[A-Za-z_][\w-]*["']?\s*:(\s|$)`)
	number  = regexp.MustCompile(`^["']?[0-9]+["']?\s*:(\s|$)`)
	element = regexp.MustCompile(`^-\s+\S`)
)

// structured reports whether the lines are YAML or JSON. The dictionaries of text readers, with a character per line, are not.
func structured(list []string) bool {
	first := ""
	characters := true
	numbers := 0
	elements := 0
	count := 0
	for _, line := range list {
		line = strings.TrimSpace(line)
		characters = characters && utf8.RuneCountInString(line) <= 1
		if line == "" || comment(line) || line == "---" && first == "" || strings.HasPrefix(line, "%YAML") {
			continue
		}
		if first == "" {
			first = line
		}
		count++
		if number.MatchString(line) {
			numbers++
		}
		if element.MatchString(line) {
			elements++
		}
	}
	switch {
	case characters || first == "":
		return false
	case first[0] == '[' || first[0] == '{' || key.MatchString(first):
		return true
	}
	return numbers == count || elements == count
}

func comment(line string) bool { return strings.HasPrefix(line, "# ") || strings.HasPrefix(line, "##") }

// lines reads one name per line.
func lines(list []string) ([]string, error) {
	var labels []string
	empty := 0
	for i, line := range list {
		line = strings.TrimSpace(line)
		switch {
		case comment(line):
		case line == "" && empty == 0:
			empty = i + 1
		case line == "":
		case empty != 0:
			return nil, fmt.Errorf("labels line %d: empty, every class needs a name", empty)
		case !utf8.ValidString(line):
			return nil, fmt.Errorf("labels line %d: not UTF-8", i+1)
		case len(line) > maxName:
			return nil, fmt.Errorf("labels line %d: a name of %d bytes", i+1, len(line))
		case len(labels) == engine.MaxLabels:
			return nil, fmt.Errorf("labels: more than %d names", engine.MaxLabels)
		default:
			labels = append(labels, line)
		}
	}
	if len(labels) == 0 {
		return nil, errors.New("labels: the file names no class")
	}
	return labels, nil
}

// parse parses JSON or YAML. Maps have keys of text.
func parse(text []byte) (value any, err error) {
	if json.Valid(text) {
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.UseNumber()
		err = decoder.Decode(&value)
		return value, err
	}
	if len(text) > maxYAML || yamldepth.Check(text) != nil {
		return nil, fmt.Errorf("neither JSON nor YAML of at most %d bytes", maxYAML)
	}
	defer func() {
		if recover() != nil { // the YAML parser panics on misplaced tags
			value, err = nil, errors.New("neither JSON nor YAML that can be read")
		}
	}()
	err = yaml.Unmarshal(text, &value)
	if err == nil {
		return value, nil
	}
	message := err.Error()
	if positioned, ok := errors.AsType[yaml.Error](err); ok {
		message = positioned.GetMessage()
		if token := positioned.GetToken(); token != nil && token.Position != nil {
			message = fmt.Sprintf("line %d: %s", token.Position.Line, message)
		}
	}
	message, _, _ = strings.Cut(message, "\n")
	return nil, fmt.Errorf("neither JSON nor YAML: %s", message)
}

// namesOf returns the names in a parsed file.
func namesOf(value any) ([]string, error) {
	switch value := value.(type) {
	case []any:
		return numbered(len(value), func(take func(class int, name any) error) error {
			for i, name := range value {
				if err := take(i, name); err != nil {
					return err
				}
			}
			return nil
		})
	case map[string]any:
		for _, name := range []string{"names", "id2label", "label2id"} {
			if inner, ok := value[name]; ok {
				return namesOf(inner)
			}
		}
		return numbered(len(value), func(take func(class int, name any) error) error {
			for key, other := range value {
				class, err := strconv.Atoi(key)
				if err != nil { // a map from names to numbers
					class, err = strconv.Atoi(fmt.Sprint(other))
					other = key
				}
				if err != nil {
					return fmt.Errorf("%.40q is neither a class number nor has one, and there is no key names", key)
				}
				if err := take(class, other); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return nil, errors.New("a list of names, or a map from class numbers to names is needed")
}

// numbered collects count names by class number: each number from 0 on exactly once.
func numbered(count int, each func(take func(class int, name any) error) error) ([]string, error) {
	if count == 0 {
		return nil, errors.New("the file names no class")
	}
	if count > engine.MaxLabels {
		return nil, fmt.Errorf("more than %d names", engine.MaxLabels)
	}
	labels := make([]string, count)
	err := each(func(class int, name any) error {
		text, ok := scalar(name)
		switch {
		case class < 0 || class >= count:
			return fmt.Errorf("class %d, but there are %d names, from 0 on", class, count)
		case !ok:
			return fmt.Errorf("class %d has no name but %.40q", class, fmt.Sprint(name))
		case text == "" || !utf8.ValidString(text):
			return fmt.Errorf("class %d has no name", class)
		case labels[class] != "":
			return fmt.Errorf("class %d has two names", class)
		}
		labels[class] = text
		return nil
	})
	if err != nil {
		return nil, err
	}
	if at := slices.Index(labels, ""); at >= 0 {
		return nil, fmt.Errorf("class %d has no name", at)
	}
	return labels, nil
}

// scalar returns a name, which YAML may have taken for a number.
func scalar(value any) (string, bool) {
	switch value := value.(type) {
	case string:
		return strings.Join(strings.Fields(value), " "), true
	case json.Number, bool, int, int64, uint64, float64:
		return fmt.Sprint(value), true
	}
	return "", false
}

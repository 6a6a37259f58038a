package labelfile

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/engine"
)

func TestRead(t *testing.T) {
	two := []string{"person", "traffic light"}
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"lines":                {"person\ntraffic light\n", two},
		"lines of Windows":     {"\uFEFFperson\r\n  traffic light\t\r\n\r\n\n", two},
		"lines of Macintosh":   {"person\rtraffic light\r", two},
		"lines with comments":  {"# my classes\nperson\n## the second\ntraffic light\n", two},
		"one line":             {"one", []string{"one"}},
		"names with colons":    {"person\nlight: red\n0: x\n", []string{"person", "light: red", "0: x"}},
		"a dictionary of text": {"!\n#\n[\n{\n-\n:\n", []string{"!", "#", "[", "{", "-", ":"}},
		"special tokens":       {"<blank>\na\nb\n", []string{"<blank>", "a", "b"}},
		"data.yaml, map":       {"# set\ntrain: a\nval: b\nnc: 2\nnames:\n  0: person\n  1: traffic light\n", two},
		"data.yaml, list":      {"names: [person, 'traffic light']\nnc: 2\n", two},
		"data.yaml, block":     {"path: .\nnames:\n- person\n- traffic light\n", two},
		"YAML list":            {"---\n- person\n- traffic light\n", two},
		"YAML map":             {"1: traffic light\n0: person\n", two},
		"YAML with numbers":    {"names: [1, no, true]\n", []string{"1", "no", "true"}},
		"Python":               {"{0: 'person', 1: 'traffic light'}", two},
		"JSON list":            {`["person", "traffic light"]`, two},
		"JSON over lines":      {"[\n  \"person\",\n  \"traffic light\"\n]\n", two},
		"JSON map":             {`{"1": "traffic light", "0": "person"}`, two},
		"JSON of names":        {`{"traffic light": 1, "person": 0}`, two},
		"config.json":          {`{"model_type": "detr", "id2label": {"0": "person", "1": "traffic light"}, "label2id": {}}`, two},
	} {
		got, err := Read(strings.NewReader(c.text))
		require.NoError(t, err, name)
		require.Equal(t, c.want, got, name)
	}
}

func TestReadRefuses(t *testing.T) {
	const known = " (one class name per line, YAML and JSON are read)"
	for text, want := range map[string]string{
		"":                                  "labels: the file names no class",
		"\n\n":                              "labels: the file names no class",
		"# only this\n":                     "labels: the file names no class",
		"a\n\nb":                            "labels line 2: empty, every class needs a name",
		"\na":                               "labels line 1: empty, every class needs a name",
		"a\n\xff\n":                         "labels line 2: not UTF-8",
		strings.Repeat("x", 2000):           "labels line 1: a name of 2000 bytes",
		strings.Repeat("x\n", 1<<16+1):      "labels: more than 65536 names",
		strings.Repeat("x", 5<<20):          "labels: over 4194304 bytes are no list of class names",
		"a\x00b":                            "labels: the file is not text" + known,
		"\xff\xfea\x00":                     "labels: the file is UTF-16: save it as UTF-8" + known,
		"<?xml version='1.0'?>\n":           "labels: the file is XML or HTML" + known,
		"item {\n id: 1\n name: 'x'\n}\n":   "labels: the file is a label map of TensorFlow (.pbtxt)" + known,
		"classes = 2\nnames = coco.names\n": "labels: the file is a .data file of Darknet: give the file that it has as names" + known,
		"mqtt:\n  url: x\n":                 `labels: "mqtt" is neither a class number nor has one, and there is no key names`,
		`{"images": [], "annotations": []}`: " is neither a class number nor has one, and there is no key names",
		"names: {0: a, 2: b}":               "labels: class 2, but there are 2 names, from 0 on",
		"{\"0\": \"a\", \"00\": \"b\"}":     "labels: class 0 has two names",
		"names: [a, [b]]":                   `labels: class 1 has no name but "[b]"`,
		"names: [a, '']":                    "labels: class 1 has no name",
		"names: [a, ~]":                     `labels: class 1 has no name but "<nil>"`,
		"names: x":                          "labels: a list of names, or a map from class numbers to names is needed",
		"names: []":                         "labels: the file names no class",
		"[a, b\n":                           "labels: neither JSON nor YAML: line ",
		"[1, 2":                             "labels: neither JSON nor YAML: line ",
		strings.Repeat("[", 100000):         "labels: neither JSON nor YAML of at most 1048576 bytes",
		`[{"id": 1, "name": "a"}]`:          `labels: class 0 has no name but "map[id:1 name:a]"`,
	} {
		got, err := Read(strings.NewReader(text))
		require.Error(t, err, "%.40q gave %q", text, got)
		require.Contains(t, err.Error(), want, "%.40q", text)
		require.NotContains(t, err.Error(), "\n")
		require.Less(t, len(err.Error()), 200)
	}
}

func FuzzRead(f *testing.F) {
	for _, text := range []string{
		"person\ncar\n", "\uFEFFa\r\n\r\nb", "names: [a, b]", "names:\n  0: a\n  1: b\n", `{"0": "a"}`, `["a"]`, "- a\n- b\n", "# x\na",
		"{0: 'a'}", "item {", "!!binary a: b", "&a [*a]",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		labels, err := Read(strings.NewReader(text))
		if (err == nil) != (len(labels) > 0) || len(labels) > engine.MaxLabels {
			t.Fatalf("%d labels and error %v", len(labels), err)
		}
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Fatalf("error of several lines: %q", err)
		}
		for _, label := range labels {
			if label == "" || !utf8.ValidString(label) || strings.ContainsAny(label, "\n\r") {
				t.Fatalf("label %q", label)
			}
		}
	})
}

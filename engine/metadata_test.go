package engine

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestParseMetadata is as long as its table of exporters.
func TestParseMetadata(t *testing.T) {
	for _, test := range []struct {
		name       string
		properties map[string]string
		want       Metadata
		err        string
	}{
		{name: "silent"},
		{
			name: "Ultralytics export",
			properties: map[string]string{
				"author": "Ultralytics", "task": "detect", "stride": "32", "batch": "1", "imgsz": "[480, 640]",
				"names": "{0: 'person', 1: 'bicycle', 2: 'car'}",
				"args":  "{'batch': 1, 'half': False, 'nms': False}",
			},
			want: Metadata{
				Task: Detect, Stride: 32, Batch: 1, Height: 480, Width: 640, Labels: []string{"person", "bicycle", "car"},
				Preprocess: Preprocess{Preset: "ultralytics"},
			},
		},
		{
			name:       "detector of RapidAI",
			properties: map[string]string{"character": "text\nfigure caption\r\ntable"},
			want:       Metadata{Labels: []string{"text", "figure caption", "table"}},
		},
		{
			name:       "text reader of RapidAI",
			properties: map[string]string{"character": "a\n疗\n\u3000\n!"},
			want:       Metadata{Labels: []string{"a", "疗", "\u3000", "!", " "}},
		},
		{
			name: "classifier", properties: map[string]string{"task": "classify"},
			want: Metadata{Task: Classify, Preprocess: Preprocess{Preset: "ultralytics-classify"}},
		},
		{
			name: "depth", properties: map[string]string{"task": "depth"},
			want: Metadata{Task: Depth, Preprocess: Preprocess{Preset: "ultralytics-depth"}},
		},
		{
			name: "RT-DETR", properties: map[string]string{"task": "detect", "head": "RTDETRDecoder"},
			want: Metadata{Task: Detect, Preprocess: Preprocess{Preset: "ultralytics-rtdetr"}},
		},
		{
			name:       "RT-DETR of older exports",
			properties: map[string]string{"task": "detect", "description": "Ultralytics RTDETR-l model trained on coco.yaml"},
			want:       Metadata{Task: Detect, Preprocess: Preprocess{Preset: "ultralytics-rtdetr"}},
		},
		{
			name: "a description of its own", properties: map[string]string{"task": "detect", "preprocess": "{preset: yolox, pad: 0}"},
			want: Metadata{Task: Detect, Preprocess: Preprocess{Preset: "yolox", Pad: new(int)}},
		},
		{
			name: "a bad description", properties: map[string]string{"preprocess": "pad: 256"}, want: Metadata{},
			err: "metadata \"preprocess\": preprocess pad: 256 is not a level of gray from 0 to 255",
		},
		{name: "end to end", properties: map[string]string{"end2end": "True"}, want: Metadata{EndToEnd: true}},
		{name: "not end to end", properties: map[string]string{"end2end": "False", "args": "{'nms': False, 'half': True}"}},
		{
			name: "suppressed by the export", properties: map[string]string{"args": "{'batch': 1, 'half': False, 'nms': True}"},
			want: Metadata{EndToEnd: true},
		},
		{
			name: "settings of another kind", properties: map[string]string{"args": "nms", "end2end": "perhaps"},
			want: Metadata{Ignored: []Ignored{{"end2end", `"perhaps" is neither true nor false`}, {"args", "unexpected 'n' at byte 0"}}},
		},
		{
			name: "settings that are a list", properties: map[string]string{"args": "['nms']"},
			want: Metadata{Ignored: []Ignored{{"args", "not a dictionary of settings"}}},
		},
		{
			name: "suppression of another kind", properties: map[string]string{"args": "{'nms': 'soft'}", "end2end": "1"},
			want: Metadata{EndToEnd: true, Ignored: []Ignored{{"args", `nms: "soft" is neither true nor false`}}},
		},
		{
			name: "numbers in other forms",
			properties: map[string]string{
				"stride": "32.0", "batch": "'1'", "imgsz": "['640', 480.0]", "kpt_shape": "(17.0, '3')", "task": "'Pose'",
				"names": "{0: 0, 1: None, 2: True, 3: 1.5}",
			},
			want: Metadata{
				Task: Pose, Stride: 32, Batch: 1, Height: 640, Width: 480, Keypoints: 17, KeypointNumbers: 3, Labels: []string{"0", "", "True", "1.5"},
				Preprocess: Preprocess{Preset: "ultralytics"},
			},
		},
		{name: "strides of all scales", properties: map[string]string{"stride": "[8, 16.0, 32]"}, want: Metadata{Stride: 32}},
		{name: "strides as an array prints them", properties: map[string]string{"stride": "tensor([ 8., 16., 32.])"}, want: Metadata{
			Ignored: []Ignored{{"stride", `"tensor([ 8., 16., 32.])" is not a number from 1 to 32768`}},
		}},
		{name: "one side", properties: map[string]string{"imgsz": "640"}, want: Metadata{Width: 640, Height: 640}},
		{name: "one side in a list", properties: map[string]string{"imgsz": "[320]"}, want: Metadata{Width: 320, Height: 320}},
		{name: "tuple", properties: map[string]string{"imgsz": "(320, 416)"}, want: Metadata{Width: 416, Height: 320}},
		{
			name: "unknown task", properties: map[string]string{"task": " pose "},
			want: Metadata{Task: "pose", Preprocess: Preprocess{Preset: "ultralytics"}},
		},
		{
			name: "what could be read", properties: map[string]string{"stride": "many", "imgsz": "[1, 2, 3]", "batch": "0", "task": "detect"},
			want: Metadata{Task: Detect, Preprocess: Preprocess{Preset: "ultralytics"}, Ignored: []Ignored{
				{"stride", `"many" is not a number from 1 to 32768`},
				{"batch", `"0" is not a number from 1 to 32768`},
				{"imgsz", "3 sides instead of height and width"},
			}},
		},
		{
			name: "nothing of it", properties: map[string]string{
				"task": "None", "stride": "None", "batch": "None", "names": "None", "imgsz": "None", "kpt_shape": "None",
				"end2end": "None", "args": "None",
			},
			want: Metadata{Ignored: []Ignored{
				{"task", `"None" is not a known task`},
				{"stride", `"None" is not a number from 1 to 32768`},
				{"batch", `"None" is not a number from 1 to 32768`},
				{"names", "neither a list nor a dictionary of names"},
				{"imgsz", "side <nil> is not a number from 1 to 32768"},
				{"kpt_shape", `"None" is not a number of keypoints up to 1024 and 2 or 3`},
				{"end2end", `"None" is neither true nor false`},
				{"args", "not a dictionary of settings"},
			}},
		},
		{
			name: "side of no size", properties: map[string]string{"imgsz": "[0, 640]"},
			want: Metadata{Ignored: []Ignored{{"imgsz", "side 0 is not a number from 1 to 32768"}}},
		},
		{
			name: "side that is none", properties: map[string]string{"imgsz": "['a', 640]"},
			want: Metadata{Ignored: []Ignored{{"imgsz", "side a is not a number from 1 to 32768"}}},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := ParseMetadata(test.properties)
			if test.err == "" {
				require.NoError(t, err)
			} else {
				require.EqualError(t, err, test.err)
			}
			assert.Equal(t, test.want, got)
		})
	}
}

func TestParseNames(t *testing.T) {
	for _, test := range []struct {
		text string
		want []string
		err  string
	}{
		{text: `{0: 'person'}`, want: []string{"person"}},
		{text: `{0: "wood's screw", 1: 'say "hi"', }`, want: []string{"wood's screw", `say "hi"`}},
		{text: `{0: 'it\'s', 1: 'a\\b', 2: 'tab\there', 3: '\q'}`, want: []string{"it's", `a\b`, "tab\there", `\q`}},
		{text: `{0: '\xe9t\xe9', 1: '\u4eba', 2: '\U0001F600', 3: '\101'}`, want: []string{"été", "人", "😀", "A"}},
		{text: `{0: '自行车', 1: u'ключ'}`, want: []string{"自行车", "ключ"}},
		{text: `{"0": "person", "2": "car"}`, want: []string{"person", "", "car"}},
		{text: `["a", "b/\/", "\ud83d\ude00"]`, want: []string{"a", "b//", "😀"}},
		{text: `["\ud83d"]`, want: []string{"\uFFFD"}},
		{text: `('a', 'b')`, want: []string{"a", "b"}},
		{text: "{\n\t0: 'a: b, {c}',\r\n 1:'d'}", want: []string{"a: b, {c}", "d"}},
		{text: `{2: 'c', 0: 'a', 1: 'b', 0: 'A'}`, want: []string{"A", "b", "c"}},
		{text: `{}`},
		{text: `[]`},
		{text: `{0: 'open`, err: "a text has no closing quote"},
		{text: `{0: 'open\`, err: "a text has no closing quote"},
		{text: `{0: 'a'`, err: "ends too early"},
		{text: `{0 'a'}`, err: `unexpected '\'' at byte 3`},
		{text: `{0: 'a' 1: 'b'}`, err: `unexpected '1' at byte 8`},
		{text: `{0: 'a'} x`, err: `unexpected 'x' at byte 9`},
		{text: `{-1: 'a'}`, err: "class number -1 is not 0 to 65535"},
		{text: `{0.5: 'a'}`, err: "class number 0.5 is not 0 to 65535"},
		{text: `{99999999999: 'a'}`, err: "class number 99999999999 is not 0 to 65535"},
		{text: `{'x': 'a'}`, err: "class number x is not 0 to 65535"},
		{text: `{None: 'a'}`, err: "class number <nil> is not 0 to 65535"},
		{text: `{0: 5}`, want: []string{"5"}},
		{text: `['a', True]`, want: []string{"a", "True"}},
		{text: `{0: ['a']}`, err: "the name of class 0 is not a text"},
		{text: `['a', {}]`, err: "entry 1 is not a text"},
		{text: `'a'`, err: "neither a list nor a dictionary of names"},
		{text: `{0: '\x4'}`, err: `escape at byte 5 is not a character`},
		{text: `{0: '\uZZZZ'}`, err: "escape at byte 5 is not a character"},
		{text: `['\U00`, err: "escape at byte 2 is cut short"},
		{text: `['\UFFFFFFFF']`, err: "escape at byte 2 is not a character"},
		{text: `[1.2.3]`, err: `"1.2.3" is not a number`},
		{text: strings.Repeat("[", 20), err: "nested too deeply"},
		{text: `person, car`, err: `unexpected 'p' at byte 0`},
	} {
		got, err := parseNames(test.text)
		if test.err != "" {
			require.EqualError(t, err, test.err, test.text)
			continue
		}
		require.NoError(t, err, test.text)
		assert.Equal(t, test.want, got, test.text)
	}
}

func TestKeypointNames(t *testing.T) {
	for _, test := range []struct {
		text    string
		points  int
		want    [][]string
		ignored string
	}{
		// As ultralytics 8.4.190 writes them: of a data.yaml with kpt_names, and of one without.
		{text: `{0: ['tip_left', 'mast'], 1: ['hook', 'boom']}`, points: 2, want: [][]string{{"tip_left", "mast"}, {"hook", "boom"}}},
		{text: `{0: ['0', '1', '2'], 1: ['0', '1', '2']}`, points: 3},
		{text: `{"1": ["hook"]}`, want: [][]string{nil, {"hook"}}},
		{text: `['hook', 'boom']`, want: [][]string{{"hook", "boom"}}},
		{text: `[['hook'], ['0']]`, want: [][]string{{"hook"}, nil}},
		{text: `{}`},
		{text: `{0: ['hook', 'boom']}`, points: 3, ignored: `class 0: 2 names of 3 keypoints`},
		{text: `{0: []}`, ignored: `class 0: 0 names of 0 keypoints`},
		{text: `{0: 'hook'}`, ignored: `class 0: no list of names`},
		{text: `{0: ['hook', 'hook']}`, ignored: `class 0: name 1 is empty, no text, or there twice`},
		{text: `{0: ['hook', 3]}`, ignored: `class 0: name 1 is empty, no text, or there twice`},
		{text: `{-1: ['hook']}`, ignored: `class number -1 is not 0 to 65535`},
	} {
		properties := map[string]string{"kpt_names": test.text}
		if test.points > 0 {
			properties["kpt_shape"] = fmt.Sprintf("[%d, 3]", test.points)
		}
		m, err := ParseMetadata(properties)
		require.NoError(t, err, test.text)
		if test.ignored != "" {
			require.Equal(t, []Ignored{{"kpt_names", test.ignored}}, m.Ignored, test.text)
			continue
		}
		assert.Equal(t, test.want, m.KeypointNames, test.text)
		if again, err := m.Properties(); assert.NoError(t, err) && m.KeypointNames != nil {
			back, err := ParseMetadata(again)
			require.NoError(t, err)
			assert.Equal(t, test.want[0] == nil, back.KeypointNames[0] == nil)
		}
	}
}

func FuzzParseMetadata(f *testing.F) {
	for _, text := range []string{
		`{0: 'person', 1: "it's"}`, `["a", "\ud83d\ude00"]`, `(1, [2.5e3, None], {'a': {}})`, `{0: '\`,
		`{"0":"\u00e9"}`, `640`, `{0: ['hook', 'boom'], 3: ['0', '1']}`, `[['a'], ['a', 'a']]`, `{0: [[]]}`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m, err := ParseMetadata(map[string]string{"names": text, "imgsz": text, "stride": text, "batch": text, "task": text, "kpt_names": text})
		if len(m.Labels) > MaxLabels || m.Width > MaxSide || m.Height > MaxSide || m.Stride > MaxSide || m.Batch > MaxSide {
			t.Fatalf("%+v", m)
		}
		if err != nil || slices.ContainsFunc(m.Ignored, func(entry Ignored) bool { return entry.Reason == "" }) {
			t.Fatal(err, m.Ignored)
		}
		for _, names := range m.KeypointNames {
			if names != nil && (len(names) == 0 || len(names) > MaxKeypoints || slices.Contains(names, "")) {
				t.Fatalf("names of keypoints %q", names)
			}
		}
		for _, label := range m.Labels {
			if !utf8.ValidString(label) {
				t.Fatalf("label %q", label)
			}
		}
	})
}

func TestOverride(t *testing.T) {
	file := Metadata{Task: Detect, Labels: []string{"a"}, Stride: 32, Width: 640, Height: 480, Batch: 1}
	assert.Equal(t, file, file.Override(Metadata{}))
	by := Metadata{
		KeypointNames: [][]string{{"hook"}}, Task: Raw, Labels: []string{"b"}, Stride: 8, Width: 1, Height: 2, Batch: 3,
		Preprocess: Preprocess{Resize: Stretch},
	}
	assert.Equal(t, by, file.Override(by))
	assert.Equal(t, Metadata{Task: Detect, Labels: []string{"a"}, Stride: 32, Width: 320, Height: 480, Batch: 1},
		file.Override(Metadata{Width: 320}))

	file.Ignored = []Ignored{{"names", "a"}, {"kpt_shape", "b"}, {"args", "c"}}
	left := []Ignored{{"kpt_shape", "b"}, {"args", "c"}}
	assert.Equal(t, left, file.Override(Metadata{Labels: []string{"b"}}).Ignored, "a setting replaces an entry")
	assert.Equal(t, left, Metadata{}.Override(Metadata{Ignored: left}).Ignored, "a plan has no entries of its own")
	assert.Len(t, file.Ignored, 3, "Override changes neither")
}

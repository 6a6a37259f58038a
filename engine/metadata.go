package engine

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// MaxLabels bounds the class numbers that metadata and label files may use.
const MaxLabels = 1 << 16

// MaxKeypoints is the highest number of keypoints per object that metadata may specify.
const MaxKeypoints = 1024

// PreprocessProperty is the metadata key of an ONNX file for a Preprocess as YAML. Edge-infer writes it into the files that it creates.
const PreprocessProperty = "preprocess"

// ActivationProperty is the metadata key of an ONNX file for an Activation.
const ActivationProperty = "activation"

// Ignored is an entry of a model's metadata that is not in the form of its key, and is therefore not used.
type Ignored struct{ Key, Reason string }

// String returns the entry as it is logged.
func (i Ignored) String() string { return i.Key + ": " + i.Reason }

// ParseMetadata reads the custom metadata of an ONNX file as Ultralytics exports write it: names and imgsz are Python or JSON literals, the
// rest are plain words and numbers. RapidAI files list their names one per line in the key character. Unknown keys are ignored, and so are
// entries that cannot be parsed, which Metadata.Ignored lists. Only the keys that edge-infer itself writes, PreprocessProperty and
// ActivationProperty, change results in a way that nothing else shows: an invalid one is an error, beside which all others are returned.
func ParseMetadata(properties map[string]string) (Metadata, error) {
	var m Metadata
	field := func(key string, read func(text string) error) error {
		text := strings.TrimSpace(properties[key])
		if text == "" {
			return nil
		}
		return read(text)
	}
	entry := func(key string, read func(text string) error) {
		if err := field(key, read); err != nil {
			m.Ignored = append(m.Ignored, Ignored{key, err.Error()})
		}
	}
	entry("task", func(text string) (err error) { m.Task, err = parseTask(text); return err })
	entry("stride", func(text string) (err error) { m.Stride, err = parseStride(text); return err })
	entry("batch", func(text string) (err error) { m.Batch, err = parseNumber(text); return err })
	entry("names", func(text string) (err error) { m.Labels, err = parseNames(text); return err })
	if m.Labels == nil {
		entry("character", func(text string) error { m.Labels = lines(text); return nil })
	}
	entry("imgsz", func(text string) (err error) { m.Height, m.Width, err = parseSides(text); return err })
	entry("kpt_shape", func(text string) (err error) { m.Keypoints, m.KeypointNumbers, err = parseKeypoints(text); return err })
	entry("kpt_names", func(text string) (err error) {
		m.KeypointNames, err = parseKeypointNames(text, m.Keypoints)
		return err
	})
	entry("end2end", func(text string) (err error) { m.EndToEnd, err = parseTruth(text); return err })
	entry("args", func(text string) error {
		suppressed, err := parseSuppressed(text)
		m.EndToEnd = m.EndToEnd || suppressed
		return err
	})
	m.Preprocess = ultralytics(m.Task, properties)
	var bad []error
	setting := func(key string, read func(text string) error) {
		if err := field(key, read); err != nil {
			bad = append(bad, fmt.Errorf("metadata %q: %w", key, err))
		}
	}
	setting(PreprocessProperty, func(text string) (err error) { m.Preprocess, err = ParsePreprocess([]byte(text)); return err })
	setting(ActivationProperty, func(text string) error {
		if a := Activation(strings.ToLower(text)); a == Softmax || a == Sigmoid {
			m.Activation = a
			return nil
		}
		return fmt.Errorf("%.40q is neither %s nor %s", text, Softmax, Sigmoid)
	})
	return m, errors.Join(bad...)
}

// lines splits class names listed one per line, as RapidAI writes them. Models for text recognition list characters, to which a space is
// added.
func lines(text string) []string {
	names := strings.Split(text, "\n")
	characters := true
	for i := range names {
		names[i] = strings.TrimSuffix(names[i], "\r")
		characters = characters && utf8.RuneCountInString(names[i]) <= 1
	}
	if characters {
		names = append(names, " ")
	}
	return names
}

// ultralytics returns the preprocessing of Ultralytics' predictors for an export. Only Ultralytics writes a task.
func ultralytics(task Task, properties map[string]string) Preprocess {
	switch {
	case task == "", task == Embed: // Ultralytics has no such task
		return Preprocess{}
	case task == Classify:
		return Preprocess{Preset: "ultralytics-classify"}
	case task == Depth:
		return Preprocess{Preset: "ultralytics-depth"}
	case properties["head"] == "RTDETRDecoder", strings.Contains(strings.ToLower(properties["description"]), "rtdetr"):
		return Preprocess{Preset: "ultralytics-rtdetr"}
	}
	return Preprocess{Preset: "ultralytics"}
}

// unquoted returns the text in a Python or JSON string, or the text itself if it is none.
func unquoted(text string) string {
	if value, err := parseLiteral(text); err == nil {
		if inner, isText := value.(string); isText {
			return strings.TrimSpace(inner)
		}
	}
	return text
}

// parseTask reads a task, in any letter case.
func parseTask(text string) (Task, error) {
	task := Task(strings.ToLower(unquoted(text)))
	if !slices.Contains([]Task{Detect, Pose, Segment, OBB, Classify, Semantic, Depth, Read, Embed, Raw}, task) {
		return "", fmt.Errorf("%.40q is not a known task", text)
	}
	return task, nil
}

// side returns a literal that is a whole number from 1 to MaxSide, or a text with one.
func side(value any) (int, bool) {
	n, ok := value.(float64)
	if text, isText := value.(string); isText {
		parsed, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		n, ok = parsed, err == nil
	}
	if !ok || !(n >= 1 && n <= MaxSide) || n != math.Trunc(n) {
		return 0, false
	}
	return int(n), true
}

// parseNumber reads a whole number: 1, 1.0 or '1'.
func parseNumber(text string) (int, error) {
	value, err := parseLiteral(text)
	if n, ok := side(value); err == nil && ok {
		return n, nil
	}
	return 0, fmt.Errorf("%.40q is not a number from 1 to %d", text, MaxSide)
}

// parseStride reads the stride, or the strides of all scales, of which it returns the largest.
func parseStride(text string) (largest int, err error) {
	value, err := parseLiteral(text)
	scales, isList := value.([]any)
	if err != nil || !isList || len(scales) == 0 {
		return parseNumber(text)
	}
	for _, scale := range scales {
		n, ok := side(scale)
		if !ok {
			return 0, fmt.Errorf("%.40q are not numbers from 1 to %d", text, MaxSide)
		}
		largest = max(largest, n)
	}
	return largest, nil
}

// parseTruth reads a Python or JSON boolean.
func parseTruth(text string) (bool, error) {
	value, err := strconv.ParseBool(unquoted(text))
	if err != nil {
		return false, fmt.Errorf("%.40q is neither true nor false", text)
	}
	return value, nil
}

// parseSuppressed reads from the settings of an export whether it suppresses overlapping boxes.
func parseSuppressed(settings string) (bool, error) {
	value, err := parseLiteral(settings)
	if err != nil {
		return false, err
	}
	all, ok := value.([]pair)
	if !ok {
		return false, errors.New("not a dictionary of settings")
	}
	for _, setting := range all {
		if setting.key != "nms" || setting.value == nil {
			continue
		}
		suppressed, err := parseTruth(fmt.Sprint(setting.value))
		if err != nil {
			return false, fmt.Errorf("nms: %w", err)
		}
		return suppressed, nil
	}
	return false, nil
}

// Override returns m with every field of by that is set. What such a field replaces is not ignored any more.
func (m Metadata) Override(by Metadata) Metadata {
	m.Ignored = slices.DeleteFunc(slices.Clone(m.Ignored), func(entry Ignored) bool { return by.sets(entry.Key) })
	if len(m.Ignored) == 0 {
		m.Ignored = by.Ignored
	}
	if by.Task != "" {
		m.Task = by.Task
	}
	if by.Labels != nil {
		m.Labels = by.Labels
	}
	if by.KeypointNames != nil {
		m.KeypointNames = by.KeypointNames
	}
	if by.Activation != "" {
		m.Activation = by.Activation
	}
	if by.LastColumn != "" {
		m.LastColumn = by.LastColumn
	}
	m.BoxShares = m.BoxShares || by.BoxShares
	m.EndToEnd = m.EndToEnd || by.EndToEnd
	for _, f := range []struct{ to, from *int }{
		{&m.Stride, &by.Stride},
		{&m.Width, &by.Width},
		{&m.Height, &by.Height},
		{&m.Batch, &by.Batch},
		{&m.Keypoints, &by.Keypoints},
		{&m.KeypointNumbers, &by.KeypointNumbers},
	} {
		if *f.from != 0 {
			*f.to = *f.from
		}
	}
	if !by.Preprocess.IsZero() {
		m.Presumed = by.Presumed
	}
	m.Preprocess = m.Preprocess.Override(by.Preprocess)
	return m
}

// sets reports whether m has the value of a key of a model's metadata.
func (m *Metadata) sets(key string) bool {
	switch key {
	case "task":
		return m.Task != ""
	case "names":
		return m.Labels != nil
	case "stride":
		return m.Stride != 0
	case "batch":
		return m.Batch != 0
	case "imgsz":
		return m.Width != 0 && m.Height != 0
	case "kpt_shape":
		return m.Keypoints != 0
	case "kpt_names":
		return m.KeypointNames != nil
	}
	return m.EndToEnd // end2end and args
}

// parseNames reads {0: 'person', 1: 'car'}, ['person', 'car'] and their JSON forms. Names that YAML reads as numbers or booleans
// are texts, as in Python. Numbers without a name get an empty one.
func parseNames(text string) ([]string, error) {
	value, err := parseLiteral(text)
	if err != nil {
		return nil, err
	}
	var labels []string
	switch names := value.(type) {
	case []any:
		for i, name := range names {
			label, ok := nameOf(name)
			if !ok {
				return nil, fmt.Errorf("entry %d is not a text", i)
			}
			labels = append(labels, label)
		}
	case []pair:
		for _, entry := range names {
			label, ok := nameOf(entry.value)
			if !ok {
				return nil, fmt.Errorf("the name of class %v is not a text", entry.key)
			}
			class, err := classNumber(entry.key)
			if err != nil {
				return nil, err
			}
			for len(labels) <= class {
				labels = append(labels, "")
			}
			labels[class] = label
		}
	default:
		return nil, errors.New("neither a list nor a dictionary of names")
	}
	if len(labels) > MaxLabels {
		return nil, fmt.Errorf("%d names, at most %d are read", len(labels), MaxLabels)
	}
	return labels, nil
}

// nameOf returns a class name as Python's str writes it; that of None is empty.
func nameOf(value any) (name string, ok bool) {
	switch value := value.(type) {
	case nil:
		return "", true
	case string:
		return value, true
	case float64:
		return strconv.FormatFloat(value, 'f', -1, 64), true
	case bool:
		if value {
			return "True", true
		}
		return "False", true
	}
	return "", false
}

// classNumber parses a dictionary key: a number in Python, a string that holds a number in JSON.
func classNumber(key any) (int, error) {
	n, ok := key.(float64)
	if text, isText := key.(string); isText {
		parsed, err := strconv.Atoi(strings.TrimSpace(text))
		n, ok = float64(parsed), err == nil
	}
	if !ok || n < 0 || n >= MaxLabels || n != math.Trunc(n) {
		return 0, fmt.Errorf("class number %.40v is not 0 to %d", key, MaxLabels-1)
	}
	return int(n), nil
}

// parseKeypoints parses "[17, 3]": the number of keypoints per object and of values per keypoint.
func parseKeypoints(text string) (points, numbers int, err error) {
	value, err := parseLiteral(text)
	if err != nil {
		return 0, 0, err
	}
	shape, _ := value.([]any)
	if len(shape) == 2 {
		k, _ := side(shape[0])
		d, _ := side(shape[1])
		if k >= 1 && k <= MaxKeypoints && (d == 2 || d == 3) {
			return k, d, nil
		}
	}
	return 0, 0, fmt.Errorf("%.40q is not a number of keypoints up to %d and 2 or 3", text, MaxKeypoints)
}

// parseKeypointNames parses {0: ['nose', 'left_eye']}, the keypoint names of each class, or its JSON form; a plain list applies to all
// classes. points is the number of keypoints, 0 if unknown. Names that are only numbers, which Ultralytics writes as placeholders, are
// ignored.
func parseKeypointNames(text string, points int) ([][]string, error) {
	value, err := parseLiteral(text)
	if err != nil {
		return nil, err
	}
	entries, _ := value.([]pair)
	if list, isList := value.([]any); isList {
		if len(list) > 0 {
			if _, nested := list[0].([]any); !nested {
				list = []any{list}
			}
		}
		for class, names := range list {
			entries = append(entries, pair{float64(class), names})
		}
	}
	var all [][]string
	for _, entry := range entries {
		class, err := classNumber(entry.key)
		if err != nil {
			return nil, err
		}
		names, err := pointNames(entry.value, points)
		if err != nil {
			return nil, fmt.Errorf("class %d: %w", class, err)
		}
		for len(all) <= class {
			all = append(all, nil)
		}
		all[class] = names
	}
	if !slices.ContainsFunc(all, func(names []string) bool { return names != nil }) {
		return nil, nil
	}
	return all, nil
}

// pointNames returns the keypoint names of a class, or nil if they are only numbers.
func pointNames(value any, points int) ([]string, error) {
	list, isList := value.([]any)
	switch {
	case !isList:
		return nil, errors.New("no list of names")
	case len(list) == 0 || len(list) > MaxKeypoints || points > 0 && len(list) != points:
		return nil, fmt.Errorf("%d names of %d keypoints", len(list), points)
	}
	names, numbered := make([]string, len(list)), true
	for i, entry := range list {
		name, isText := entry.(string)
		if !isText || name == "" || slices.Contains(names[:i], name) {
			return nil, fmt.Errorf("name %d is empty, no text, or there twice", i)
		}
		names[i], numbered = name, numbered && name == strconv.Itoa(i)
	}
	if numbered {
		return nil, nil
	}
	return names, nil
}

// parseSides reads "640" and "[height, width]".
func parseSides(text string) (height, width int, err error) {
	value, err := parseLiteral(text)
	if err != nil {
		return 0, 0, err
	}
	sides, isList := value.([]any)
	if !isList {
		sides = []any{value, value}
	}
	if len(sides) == 1 {
		sides = append(sides, sides[0])
	}
	if len(sides) != 2 {
		return 0, 0, fmt.Errorf("%d sides instead of height and width", len(sides))
	}
	var numbers [2]int
	for i, value := range sides {
		n, ok := side(value)
		if !ok {
			return 0, 0, fmt.Errorf("side %.40v is not a number from 1 to %d", value, MaxSide)
		}
		numbers[i] = n
	}
	return numbers[0], numbers[1], nil
}

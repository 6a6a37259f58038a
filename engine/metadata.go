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

// ParseMetadata reads the custom metadata of an ONNX file as Ultralytics exports write it: names and imgsz are Python or JSON literals, the
// rest are plain words and numbers. RapidAI files list their names one per line in the key character. Unknown keys are ignored. A value
// that cannot be parsed is left zero and named in the error; all others are returned.
func ParseMetadata(properties map[string]string) (Metadata, error) {
	var m Metadata
	var bad []error
	field := func(key string, read func(text string) error) {
		text := strings.TrimSpace(properties[key])
		if text == "" {
			return
		}
		if err := read(text); err != nil {
			bad = append(bad, fmt.Errorf("metadata %q: %w", key, err))
		}
	}
	number := func(to *int) func(string) error {
		return func(text string) error {
			n, err := strconv.Atoi(text)
			if err != nil || n < 1 || n > MaxSide {
				return fmt.Errorf("%.40q is not a number from 1 to %d", text, MaxSide)
			}
			*to = n
			return nil
		}
	}
	field("task", func(text string) error { m.Task = Task(text); return nil })
	field("stride", number(&m.Stride))
	field("batch", number(&m.Batch))
	field("names", func(text string) (err error) { m.Labels, err = parseNames(text); return err })
	if m.Labels == nil {
		field("character", func(text string) error { m.Labels = lines(text); return nil })
	}
	field("imgsz", func(text string) (err error) { m.Height, m.Width, err = parseSides(text); return err })
	field("kpt_shape", func(text string) (err error) { m.Keypoints, m.KeypointNumbers, err = parseKeypoints(text); return err })
	field("kpt_names", func(text string) (err error) {
		m.KeypointNames, err = parseKeypointNames(text, m.Keypoints)
		return err
	})
	m.Preprocess = ultralytics(properties)
	field(PreprocessProperty, func(text string) (err error) { m.Preprocess, err = ParsePreprocess([]byte(text)); return err })
	field(ActivationProperty, func(text string) error {
		if a := Activation(strings.ToLower(text)); a == Softmax || a == Sigmoid {
			m.Activation = a
			return nil
		}
		return fmt.Errorf("%.40q is neither %s nor %s", text, Softmax, Sigmoid)
	})
	m.EndToEnd = truth(properties["end2end"]) || truth(argument(properties["args"], "nms"))
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
func ultralytics(properties map[string]string) Preprocess {
	task := strings.TrimSpace(properties["task"])
	switch {
	case task == "", Task(task) == Embed: // Ultralytics has no such task
		return Preprocess{}
	case Task(task) == Classify:
		return Preprocess{Preset: "ultralytics-classify"}
	case Task(task) == Depth:
		return Preprocess{Preset: "ultralytics-depth"}
	case properties["head"] == "RTDETRDecoder", strings.Contains(strings.ToLower(properties["description"]), "rtdetr"):
		return Preprocess{Preset: "ultralytics-rtdetr"}
	}
	return Preprocess{Preset: "ultralytics"}
}

// argument returns one of the settings of an export as text, or "".
func argument(settings, name string) string {
	value, err := parseLiteral(settings)
	if err != nil {
		return ""
	}
	all, _ := value.([]pair)
	for _, entry := range all {
		if entry.key == name {
			return fmt.Sprint(entry.value)
		}
	}
	return ""
}

// truth parses a Python or JSON boolean; anything else is false.
func truth(text string) bool {
	value, err := strconv.ParseBool(strings.TrimSpace(text))
	return err == nil && value
}

// Override returns m with every field of by that is set.
func (m Metadata) Override(by Metadata) Metadata {
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

// parseNames reads {0: 'person', 1: 'car'}, ['person', 'car'] and their JSON forms. Numbers without a name get an empty one.
func parseNames(text string) ([]string, error) {
	value, err := parseLiteral(text)
	if err != nil {
		return nil, err
	}
	var labels []string
	switch names := value.(type) {
	case []any:
		for i, name := range names {
			label, ok := name.(string)
			if !ok {
				return nil, fmt.Errorf("entry %d is not a text", i)
			}
			labels = append(labels, label)
		}
	case []pair:
		for _, entry := range names {
			label, ok := entry.value.(string)
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
		k, _ := shape[0].(float64)
		d, _ := shape[1].(float64)
		if k >= 1 && k <= MaxKeypoints && k == math.Trunc(k) && (d == 2 || d == 3) {
			return int(k), int(d), nil
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
	for i, side := range sides {
		n, ok := side.(float64)
		if !ok || n < 1 || n > MaxSide || n != math.Trunc(n) {
			return 0, 0, fmt.Errorf("side %.40v is not a number from 1 to %d", side, MaxSide)
		}
		numbers[i] = int(n)
	}
	return numbers[0], numbers[1], nil
}

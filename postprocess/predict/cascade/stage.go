package cascade

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// Defaults of a Stage.
const (
	DefaultMinSize  = 16
	DefaultInterval = 500 * time.Millisecond
	DefaultVotes    = 5
)

// MaxVotes bounds Stage.Votes.
const MaxVotes = 32

// Stage is a secondary network and the objects that it runs on. Set the fields before Open of a Chained or Secondary.
type Stage struct {
	// Name is the name of the attribute.
	Name string
	// Predictor is the network: a classifier, a text reader or an embedding network, of which there may be one. The stage owns it.
	predict.Predictor
	// Opener opens the network for a Secondary: at first if Predictor is nil, and again if it hangs. Its context ends with Close.
	Opener func(context.Context) (predict.Predictor, error)
	// Classes are the labels of the first network whose objects it runs on; nil for all.
	Classes []string
	// MinSize is the minimum of a box's shorter side in pixels; Margin enlarges the crop by that share of the box's sides on each side.
	MinSize, Margin float32
	// Interval is the minimum time between two crops of an object.
	Interval time.Duration
	// Votes is how many of the latest predictions vote.
	Votes int
	// Confidence is the mean score from which an attribute is reported; for an embedding network the cosine above which two embeddings are
	// of the same object, 0 for the tracker's default.
	Confidence float32
	// MaxLostAge is how long a lost object can be found again by its embedding, 0 for the tracker's default.
	MaxLostAge time.Duration
	// KeepEmbedding makes Secondary.Embedding return the vector.
	KeepEmbedding bool

	reads  bool     // it is a text reader
	embeds bool     // it is an embedding network
	wanted []bool   // by class of the first network; nil for all
	values []string // by class of this one
}

// SettingsError reports that a stage's settings do not fit its network or the first one.
type SettingsError struct{ Err error }

func (e *SettingsError) Error() string { return e.Err.Error() }

// Unwrap returns what is wrong.
func (e *SettingsError) Unwrap() error { return e.Err }

// open validates stages whose networks are open against the labels of the first network.
func open(stages []Stage, labels []string) error {
	embedder := ""
	for i := range stages {
		if err := stages[i].check(labels); err != nil {
			return err
		}
		if err := stages[i].bind(&embedder); err != nil {
			return err
		}
	}
	return nil
}

// check validates the fields that need no open network against the labels of the first network, and sets the defaults.
func (s *Stage) check(labels []string) error {
	if s.MinSize == 0 {
		s.MinSize = DefaultMinSize
	}
	if s.Interval == 0 {
		s.Interval = DefaultInterval
	}
	if s.Votes == 0 {
		s.Votes = DefaultVotes
	}
	var err error
	switch {
	case s.Name == "":
		err = errors.New("a cascade has no name")
	case !(s.MinSize > 0):
		err = fmt.Errorf("cascade %s: smallest size %v must be over 0", s.Name, s.MinSize)
	case !(s.Margin >= 0 && s.Margin <= 1):
		err = fmt.Errorf("cascade %s: margin %v must be 0 to 1", s.Name, s.Margin)
	case s.Interval < 0:
		err = fmt.Errorf("cascade %s: interval %v must be positive", s.Name, s.Interval)
	case s.Votes < 1 || s.Votes > MaxVotes:
		err = fmt.Errorf("cascade %s: %d votes must be 1 to %d", s.Name, s.Votes, MaxVotes)
	}
	if err != nil {
		return &SettingsError{err}
	}
	return s.findClasses(labels)
}

// findClasses sets wanted from Classes.
func (s *Stage) findClasses(labels []string) error {
	s.wanted = nil
	if len(s.Classes) == 0 {
		return nil
	}
	s.wanted = make([]bool, len(labels))
	for _, label := range s.Classes {
		class := slices.Index(labels, label)
		if class < 0 {
			return &SettingsError{fmt.Errorf("cascade %s: first model: %w", s.Name, postprocess.UnknownLabelError(label, labels))}
		}
		s.wanted[class] = true
	}
	return nil
}

// bind sets what follows from the open network, and validates it. embedder is the name of the stage with an embedding network, empty for
// none so far.
func (s *Stage) bind(embedder *string) error {
	model := s.Model()
	task := model.Recognised.Task
	if !slices.Contains([]engine.Task{engine.Classify, engine.Read, engine.Embed}, task) {
		return &SettingsError{fmt.Errorf(
			"cascade %s: model %s outputs %s (a cascade needs a classifier, a text reader or an embedding network)",
			s.Name,
			model.Path,
			model.Recognised.Gives,
		)}
	}
	if s.KeepEmbedding && task != engine.Embed {
		return &SettingsError{fmt.Errorf("cascade %s: model %s has no embedding, it outputs %s", s.Name, model.Path, model.Recognised.Gives)}
	}
	s.reads = task == engine.Read
	s.embeds = task == engine.Embed
	if s.embeds && *embedder != "" && *embedder != s.Name {
		return &SettingsError{fmt.Errorf("cascade %s: %s is an embedding network already (one is supported)", s.Name, *embedder)}
	}
	if s.embeds {
		*embedder = s.Name
	}
	s.values = make([]string, max(model.Recognised.Classes, len(model.Metadata.Labels)))
	for class := range s.values {
		s.values[class] = postprocess.Label(model.Metadata.Labels, class)
	}
	return nil
}

// wants reports whether the stage runs on a detection.
func (s *Stage) wants(f *postprocess.Detection) bool {
	return min(f.Width(), f.Height()) >= s.MinSize && (s.wanted == nil || f.Class >= 0 && f.Class < len(s.wanted) && s.wanted[f.Class])
}

// prediction is the result for one crop.
type prediction struct {
	class int // 0 for a text, -1 for none
	score float32
	text  text // of a text reader
	// vector is that of an embedding network, in the memory of cropBatch.
	vector []float32
}

// interpret returns the prediction in the detections of a crop. A vector belongs to the engine.
func (s *Stage) interpret(found []postprocess.Detection) prediction {
	switch {
	case len(found) == 0:
		return prediction{class: -1}
	case s.embeds:
		return prediction{score: 1, vector: found[0].Detail.Embedding}
	case s.reads:
		t, score := textOf(found)
		return prediction{score: score, text: t}
	}
	return prediction{class: found[0].Class, score: found[0].Score}
}

// winner returns the vote of the latest predictions of an object: a number that changes with every other result, and its score.
func (s *Stage) winner(v *track) (class int, score float32, votes int) {
	if !s.reads {
		return v.winner(s.Votes)
	}
	t, score, votes := v.textVote(s.Votes)
	if votes == 0 {
		return -1, 0, 0
	}
	if t != v.lastText || v.spelled == "" {
		v.lastText, v.spelled = t, s.spell(t)
		v.textChanges++
	}
	return v.textChanges, score, votes
}

// spell returns a text in the alphabet.
func (s *Stage) spell(t text) string {
	var all strings.Builder
	for _, class := range t.characters[:t.count] {
		all.WriteString(s.value(int(class)))
	}
	return all.String()
}

// value returns the label of a class.
func (s *Stage) value(class int) string {
	if class < len(s.values) {
		return s.values[class]
	}
	return postprocess.Label(nil, class) // of a network with an unknown number of classes
}

// attribute returns the attribute for a class, or for a text with that spelling.
func (s *Stage) attribute(class int, spelled string, score float32, votes int) postprocess.Attribute {
	if s.reads {
		return postprocess.Attribute{Name: s.Name, Value: spelled, Class: -1, Score: score, Votes: votes}
	}
	return postprocess.Attribute{Name: s.Name, Value: s.value(class), Class: class, Score: score, Votes: votes}
}

// cropBatch holds the crops of a request, side by side in memory that the engine reads.
type cropBatch struct {
	stage       *Stage
	memory      *engine.Buffer
	fixed       bool // add does not allocate: it returns errFull, and wanted is the room that it needs
	wanted      int  // 0 if no room would help
	used        int
	crops       []engine.Image // run sets Data, when the memory is final
	starts      []int
	predictions []prediction // by crop, after run
	invalid     int          // predictions of crops whose outputs were invalid
	// vectors are those of the predictions, until the batch is cleared by its user.
	vectors []float32
}

func (s *cropBatch) clear() {
	s.used = 0
	s.crops = s.crops[:0]
	s.starts = s.starts[:0]
}

// copyVector copies the vector of a prediction, which belongs to the engine until its next request.
func (s *cropBatch) copyVector(l prediction) prediction {
	first := len(s.vectors)
	s.vectors = append(s.vectors, l.vector...)
	l.vector = s.vectors[first:len(s.vectors):len(s.vectors)]
	return l
}

// maxBytes bounds the memory of the crops of a request.
const maxBytes = 64 << 20

// errFull is returned when there is no room for another crop.
var errFull = errors.New("too many crops for one request")

// add copies a box of an image. It is false for a box outside of the image.
func (s *cropBatch) add(img *engine.Image, box postprocess.Box) (bool, error) {
	part := region(box, s.stage.Margin, img.Width, img.Height)
	if part.Empty() {
		return false, nil
	}
	if err := s.reserve(s.used + img.PartBytes(part)); err != nil {
		return false, err
	}
	crop, err := img.CopyPart(s.memory.Data[s.used:], part)
	if err != nil {
		return false, fmt.Errorf("cascade %s: %w", s.stage.Name, err)
	}
	s.crops = append(s.crops, crop)
	s.starts = append(s.starts, s.used)
	s.used += len(crop.Data)
	return true, nil
}

// reserve makes room for that many bytes.
func (s *cropBatch) reserve(size int) error {
	if s.memory != nil && size <= len(s.memory.Data) {
		return nil
	}
	if size > maxBytes && s.used > 0 {
		return errFull
	}
	size = max(2*size, minRoom)
	if s.fixed {
		s.wanted = size
		return errFull
	}
	return s.grow(size)
}

// minRoom is the least memory of a batch.
const minRoom = 1 << 20

// grow moves the crops into memory of another size.
func (s *cropBatch) grow(size int) error {
	memory, err := s.stage.Alloc(size)
	if err != nil {
		return fmt.Errorf("cascade %s: %w", s.stage.Name, err)
	}
	if s.memory != nil {
		copy(memory.Data, s.memory.Data[:s.used])
		s.memory.Free()
	}
	s.memory = memory
	return nil
}

// room returns the size of the memory.
func (s *cropBatch) room() int {
	if s.memory == nil {
		return 0
	}
	return len(s.memory.Data)
}

// run runs the network on all crops and fills in predictions. The error may be that of single crops, whose predictions have no class.
func (s *cropBatch) run() error {
	s.predictions = s.predictions[:0]
	s.invalid = 0
	var invalid error
	for i := range s.crops {
		s.crops[i].Data = s.memory.Data[s.starts[i]:][:len(s.crops[i].Data)]
	}
	batch := s.stage.Model().MaxBatch
	for from := 0; from < len(s.crops); from += batch {
		if err := s.stage.Submit(0, s.crops[from:min(from+batch, len(s.crops))]); err != nil {
			return fmt.Errorf("cascade %s: %w", s.stage.Name, err)
		}
		result, err := s.stage.Wait(0)
		if err == nil && result.Contradiction != nil {
			err = result.Contradiction
		}
		if err != nil {
			return fmt.Errorf("cascade %s: %w", s.stage.Name, err)
		}
		for i := range result.Results {
			detections := result.Results[i].Detections
			if result.Results[i].Err != nil {
				detections, invalid = nil, fmt.Errorf("cascade %s: %w", s.stage.Name, result.Results[i].Err)
				s.invalid++
			}
			s.predictions = append(s.predictions, s.copyVector(s.stage.interpret(detections)))
		}
	}
	return invalid
}

// free frees the memory.
func (s *cropBatch) free() {
	if s.memory != nil {
		s.memory.Free()
		s.memory = nil
	}
}

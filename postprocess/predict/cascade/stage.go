package cascade

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// What a Stage's fields are where they are zero.
const (
	DefaultMinSize  = 16
	DefaultInterval = 500 * time.Millisecond
	DefaultVotes    = 5
)

// MaxVotes bounds how many looks at an object have a vote.
const MaxVotes = 32

// Stage is a second network and what it is shown. The fields are set before it is given away.
type Stage struct {
	// Name is that of the attribute.
	Name string
	// Predictor is the network: a classifier, a reader of text, or one that embeds, of which there may be one. It belongs to the stage from
	// then on.
	predict.Predictor
	// Classes are the labels of the first network whose objects are shown; nil for all.
	Classes []string
	// MinSize is the shorter side in pixels that a box must have; Margin the share of its sides that is shown beyond each of them.
	MinSize, Margin float32
	// Interval is the shortest time between two looks at an object.
	Interval time.Duration
	// Votes is how many of the latest looks decide.
	Votes int
	// Confidence is the mean score from which an attribute is told.
	Confidence float32
	// Recall is for how long an object that was lost is known again by a network that embeds, 0 for what the tracker has. Reported is the
	// cosine from which two of its looks are at one object then, 0 as well.
	MaxLostAge time.Duration
	// KeepEmbedding has Attendant.Embedding tell the vector of a network that embeds.
	KeepEmbedding bool

	reads  bool     // a text, of up to MaxCharacters
	embeds bool     // by which the tracker knows objects again
	wanted []bool   // by class of the first network; nil for all
	values []string // by class of this one
}

// open checks stages against the labels of the first network.
func open(stages []Stage, labels []string) error {
	embeds := ""
	for i := range stages {
		s := &stages[i]
		if err := s.open(labels); err != nil {
			return err
		}
		if s.embeds && embeds != "" {
			return fmt.Errorf("cascade %s: %s embeds already, and objects are known again by one vector", s.Name, embeds)
		}
		if s.embeds {
			embeds = s.Name
		}
	}
	return nil
}

// open checks the fields against the labels of the first network.
func (s *Stage) open(labels []string) error {
	if s.MinSize == 0 {
		s.MinSize = DefaultMinSize
	}
	if s.Interval == 0 {
		s.Interval = DefaultInterval
	}
	if s.Votes == 0 {
		s.Votes = DefaultVotes
	}
	model := s.Model()
	switch {
	case s.Name == "":
		return errors.New("a cascade has no name")
	case !slices.Contains([]engine.Task{engine.Classify, engine.Read, engine.Embed}, model.Recognised.Task):
		return fmt.Errorf("cascade %s: model %s does not classify but gives %s (a classifier, a reader of text or an embedding is what a "+
			"cascade takes)", s.Name, model.Path, model.Recognised.Gives)
	case s.KeepEmbedding && model.Recognised.Task != engine.Embed:
		return fmt.Errorf("cascade %s: model %s has no vector to tell but gives %s", s.Name, model.Path, model.Recognised.Gives)
	case !(s.MinSize > 0):
		return fmt.Errorf("cascade %s: smallest size %v must be over 0", s.Name, s.MinSize)
	case !(s.Margin >= 0 && s.Margin <= 1):
		return fmt.Errorf("cascade %s: margin %v must be 0 to 1", s.Name, s.Margin)
	case s.Interval < 0:
		return fmt.Errorf("cascade %s: %v between looks must be positive", s.Name, s.Interval)
	case s.Votes < 1 || s.Votes > MaxVotes:
		return fmt.Errorf("cascade %s: %d votes must be 1 to %d", s.Name, s.Votes, MaxVotes)
	}
	s.reads, s.embeds = model.Recognised.Task == engine.Read, model.Recognised.Task == engine.Embed
	s.values = make([]string, max(model.Recognised.Classes, len(model.Metadata.Labels)))
	for class := range s.values {
		s.values[class] = postprocess.Label(model.Metadata.Labels, class)
	}
	s.wanted = nil
	if len(s.Classes) == 0 {
		return nil
	}
	s.wanted = make([]bool, len(labels))
	for _, label := range s.Classes {
		class := slices.Index(labels, label)
		if class < 0 {
			return fmt.Errorf("cascade %s: label %q is not one of the first model's: %.400q", s.Name, label, labels)
		}
		s.wanted[class] = true
	}
	return nil
}

// wants reports whether a box of that class is shown.
func (s *Stage) wants(f *postprocess.Detection) bool {
	return min(f.Width(), f.Height()) >= s.MinSize && (s.wanted == nil || f.Class >= 0 && f.Class < len(s.wanted) && s.wanted[f.Class])
}

// prediction is what one prediction at an object showed.
type prediction struct {
	class int // 0 for a text, -1 where there was nothing to be seen
	score float32
	text  text // of a network that reads
	// vector is that of a network that embeds, in the memory of shown.
	vector []float32
}

// interpret is what a look at an image gave. A vector is the engine's.
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

// winner is what the latest looks at an object come to: its number, which is another one for every other answer, and its score.
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

// spell writes a text in the alphabet.
func (s *Stage) spell(t text) string {
	var all strings.Builder
	for _, class := range t.characters[:t.count] {
		all.WriteString(s.value(int(class)))
	}
	return all.String()
}

// value is the label of a class.
func (s *Stage) value(class int) string {
	if class < len(s.values) {
		return s.values[class]
	}
	return postprocess.Label(nil, class) // of a network that does not say how many there are
}

// attribute is what a class comes to, or what a text does that is spelt so.
func (s *Stage) attribute(class int, spelled string, score float32, votes int) postprocess.Attribute {
	if s.reads {
		return postprocess.Attribute{Name: s.Name, Value: spelled, Class: -1, Score: score, Votes: votes}
	}
	return postprocess.Attribute{Name: s.Name, Value: s.value(class), Class: class, Score: score, Votes: votes}
}

// cropBatch are the crops that a network is to look at, side by side in memory that its engine reads.
type cropBatch struct {
	stage       *Stage
	memory      *engine.Buffer
	used        int
	crops       []engine.Image // Data is set by images, when the memory moves no more
	starts      []int
	predictions []prediction // one for each crop, after run; class -1 where there was nothing to be seen
	// vectors are those of the looks of one request or more, until they are forgotten.
	vectors []float32
}

func (s *cropBatch) clear() {
	s.used, s.crops, s.starts = 0, s.crops[:0], s.starts[:0]
}

// copyVector copies the vector of a look, which is the engine's until its next request.
func (s *cropBatch) copyVector(l prediction) prediction {
	first := len(s.vectors)
	s.vectors = append(s.vectors, l.vector...)
	l.vector = s.vectors[first:len(s.vectors):len(s.vectors)]
	return l
}

// maxBytes bounds the memory of the crops of a request.
const maxBytes = 64 << 20

// errFull says that there is no room for another crop.
var errFull = errors.New("too many crops for one request")

// add cuts a box out of an image. It reports false where there is nothing to be seen of it.
func (s *cropBatch) add(img *engine.Image, box postprocess.Box) (bool, error) {
	part := region(box, s.stage.Margin, img.Width, img.Height)
	if part.Empty() {
		return false, nil
	}
	if err := s.reserve(s.used + img.PartBytes(part)); err != nil {
		return false, err
	}
	crop := img.CopyPart(s.memory.Data[s.used:], part)
	s.crops, s.starts = append(s.crops, crop), append(s.starts, s.used)
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
	memory, err := s.stage.Alloc(max(2*size, 1<<20))
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

// run has the network look at all crops, and fills in looks.
func (s *cropBatch) run() error {
	s.predictions = s.predictions[:0]
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
			err = result.Contradiction // nothing that it says means anything
		}
		if err != nil {
			return fmt.Errorf("cascade %s: %w", s.stage.Name, err)
		}
		for i := range result.Results {
			s.predictions = append(s.predictions, s.copyVector(s.stage.interpret(result.Results[i].Detections)))
		}
	}
	return nil
}

// free gives the memory back.
func (s *cropBatch) free() {
	if s.memory != nil {
		s.memory.Free()
		s.memory = nil
	}
}

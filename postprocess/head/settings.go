package head

import (
	"fmt"
	"math"
	"slices"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
)

// Defaults of Options; postprocess.DefaultConfidence is the default of MinScore.
const (
	DefaultIoU           = 0.45
	DefaultMaxCandidates = 30000
	DefaultLimit         = 300
	DefaultTopK          = 5
)

// Options configures NewDecoder. Zero values select the defaults.
type Options struct {
	// Layout selects the head instead of recognising it.
	Layout Layout
	// MinScore is the lowest score returned: 0 for DefaultConfidence, or for none in a classification. ClassMinScores overrides it by
	// class.
	MinScore       float32
	ClassMinScores map[int]float32
	// IoU is the overlap above which the lower-scored box is suppressed, 0 for DefaultIoU.
	IoU float32
	// Classes are the classes returned; nil for all.
	Classes []int
	// Agnostic lets boxes of different classes suppress each other.
	Agnostic bool
	// MultiLabel returns a box once for every class above its minimum score instead of once for its best class.
	MultiLabel bool
	// MaxCandidates is how many of the best boxes enter suppression, Limit how many detections are returned.
	MaxCandidates, Limit int
	// TopK is the number of classes that a classifier with exclusive classes returns. With TopAlways it returns them whatever their scores.
	TopK      int
	TopAlways bool
}

func (o *Options) validate() error {
	setDefault(&o.IoU, DefaultIoU)
	setDefault(&o.MaxCandidates, DefaultMaxCandidates)
	setDefault(&o.Limit, DefaultLimit)
	setDefault(&o.TopK, DefaultTopK)
	switch {
	case !(o.MinScore >= 0 && o.MinScore < 1):
		return fmt.Errorf("threshold %v is not between 0 and 1", o.MinScore)
	case !(o.IoU > 0 && o.IoU <= 1):
		return fmt.Errorf("iou %v is not between 0 and 1", o.IoU)
	case o.MaxCandidates < 1 || o.MaxCandidates > 1<<20:
		return fmt.Errorf("max candidates %d is not between 1 and %d", o.MaxCandidates, 1<<20)
	case o.Limit < 1 || o.Limit > o.MaxCandidates:
		return fmt.Errorf("limit %d is not between 1 and max candidates %d", o.Limit, o.MaxCandidates)
	case o.TopK < 1:
		return fmt.Errorf("top-k %d is less than 1", o.TopK)
	}
	return nil
}

func setDefault[T int | float32](field *T, value T) {
	if *field == 0 {
		*field = value
	}
}

// settings are the options of a decoder with the head and the classes of its model. Decoders of heads read them only.
type settings struct {
	Options
	match     match
	about     Description
	columns   int       // scored classes; 0 while their number is open, and where the network gives class numbers
	classes   int       // of the labels; 0 while their number is not known
	minScores []float32 // by class: infinity for one that is not wanted
}

// setClasses fills the tables that depend on the number of scored classes and of labels, 0 while it is not known.
func (s *settings) setClasses(columns, labels int) error {
	s.columns = columns
	s.classes = labels
	if labels == 0 {
		for column := range columns {
			s.classes = max(s.classes, s.match.numbers.class(column)+1)
		}
	}
	for _, class := range s.Classes {
		if class < 0 || (s.classes > 0 && class >= s.classes) {
			return fmt.Errorf("class %d is not one of the model's %d", class, s.classes)
		}
	}
	for class, threshold := range s.ClassMinScores {
		if class < 0 || (s.classes > 0 && class >= s.classes) {
			return fmt.Errorf("class %d of the class thresholds is not one of the model's %d", class, s.classes)
		}
		if !(threshold > 0 && threshold < 1) {
			return fmt.Errorf("threshold %v of class %d is not between 0 and 1", threshold, class)
		}
	}
	if s.about.Task != engine.Classify {
		setDefault(&s.MinScore, postprocess.DefaultConfidence)
	}
	s.minScores = make([]float32, s.classes)
	for class := range s.minScores {
		s.minScores[class] = s.minScore(class)
	}
	return nil
}

// minScore returns the minimum score of a class, infinity for a class that is filtered out.
func (s *settings) minScore(class int) float32 {
	if s.Classes != nil && !slices.Contains(s.Classes, class) {
		return float32(math.Inf(1))
	}
	if own, ok := s.ClassMinScores[class]; ok {
		return own
	}
	return s.MinScore
}

// leastMinScore returns the lowest minimum score of any class.
func (s *settings) leastMinScore() float32 {
	least := s.MinScore
	for _, own := range s.ClassMinScores {
		least = min(least, own)
	}
	return least
}

// columnMinScores returns the minimum score of every scored class, by its number in the network.
func (s *settings) columnMinScores() []float32 {
	scores := make([]float32, s.columns)
	for column := range scores {
		scores[column] = float32(math.Inf(1))
		if class := s.match.numbers.class(column); class >= 0 && class < s.classes {
			scores[column] = s.minScores[class]
		}
	}
	return scores
}

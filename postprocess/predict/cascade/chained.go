package cascade

import (
	"errors"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// Chained is a predictor that runs further networks on the detections of another: they get attributes above the confidence of each stage,
// and the vector of an embedding network. It has one slot. Set the exported fields before Open; Close closes all predictors.
type Chained struct {
	predict.Predictor
	Stages []Stage

	// Submit and Wait only.
	images     []engine.Image
	batches    []cropBatch // by stage
	detections []*postprocess.Detection
	details    []postprocess.Detail
	attributes []postprocess.Attribute
}

// Open validates the stages. An error leaves all predictors open.
func (c *Chained) Open() error {
	c.batches = make([]cropBatch, len(c.Stages))
	if err := open(c.Stages, c.Model().Metadata.Labels); err != nil {
		return err
	}
	for i := range c.Stages {
		c.batches[i].stage = &c.Stages[i]
	}
	return nil
}

// Slots implements predict.Predictor.
func (c *Chained) Slots() int { return 1 }

// Submit implements predict.Predictor.
func (c *Chained) Submit(slot int, images []engine.Image) error {
	if err := c.Predictor.Submit(slot, images); err != nil {
		return err
	}
	c.images = append(c.images[:0], images...)
	return nil
}

// Wait implements predict.Predictor.
func (c *Chained) Wait(slot int) (*predict.BatchResult, error) {
	result, err := c.Predictor.Wait(slot)
	if err != nil || result.Contradiction != nil {
		return result, err
	}
	c.addDetails(result)
	for i := range c.batches {
		if err := c.runStage(&c.batches[i], result); err != nil {
			return nil, err
		}
	}
	return result, nil
}

// addDetails gives every detection a detail with room for as many attributes as there are stages.
func (c *Chained) addDetails(result *predict.BatchResult) {
	total := 0
	for i := range result.Results {
		total += len(result.Results[i].Detections)
	}
	if cap(c.details) < total {
		c.details = make([]postprocess.Detail, 0, 2*total)
		c.attributes = make([]postprocess.Attribute, 2*total*len(c.Stages))
	}
	c.details = c.details[:0]
	for i := range result.Results {
		detections := result.Results[i].Detections
		for k := range detections {
			f := &detections[k]
			detail := postprocess.Detail{}
			if f.Detail != nil {
				detail = *f.Detail
			}
			first := len(c.details) * len(c.Stages)
			detail.Attributes = c.attributes[first : first : first+len(c.Stages)]
			c.details = append(c.details, detail)
			f.Detail = &c.details[len(c.details)-1]
		}
	}
}

// runStage runs one network on the objects that it wants of all images, in as many requests as the crops need.
func (c *Chained) runStage(s *cropBatch, result *predict.BatchResult) error {
	s.clear()
	s.vectors = s.vectors[:0]
	c.detections = c.detections[:0]
	for i := range result.Results {
		detections := result.Results[i].Detections
		for k := range detections {
			f := &detections[k]
			if !s.stage.wants(f) {
				continue
			}
			added, err := s.add(&c.images[i], f.Box)
			if errors.Is(err, errFull) {
				err = c.apply(s)
				if err == nil {
					added, err = s.add(&c.images[i], f.Box)
				}
			}
			if err != nil {
				return err
			}
			if added {
				c.detections = append(c.detections, f)
			}
		}
	}
	return c.apply(s)
}

// apply runs a batch and adds its predictions to the detections.
func (c *Chained) apply(s *cropBatch) error {
	if err := s.run(); err != nil {
		return err
	}
	for i, p := range s.predictions {
		detail := c.detections[i].Detail
		if s.stage.embeds {
			detail.Embedding = p.vector
			continue
		}
		if p.class >= 0 && p.score >= s.stage.Confidence {
			detail.Attributes = append(detail.Attributes, s.stage.attribute(p.class, s.stage.spell(p.text), p.score, 1))
		}
	}
	s.clear()
	c.detections = c.detections[:0]
	return nil
}

// Close implements predict.Predictor.
func (c *Chained) Close() error {
	errs := []error{c.Predictor.Close()}
	for i := range c.batches {
		c.batches[i].free()
	}
	for i := range c.Stages {
		errs = append(errs, c.Stages[i].Close())
	}
	return errors.Join(errs...)
}

package predict

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/auto"
	"github.com/edge-infer/edge-infer/postprocess/head"
)

// Network is the Predictor of one network on one engine.
type Network struct {
	engine         engine.Engine
	rejecter       rejecter            // the same engine if it has several servers, else nil
	reader         engine.DeviceReader // the same engine if it reads images in a GPU's memory, else nil
	model          Model
	layout         head.Layout // selected by the caller
	slots          []slot
	confirmed      bool // it was
	perImageErrors bool // an error of the engine becomes that of each image

	evidence evidence
	unnamed  unnamedClass
}

var _ Predictor = (*Network)(nil)

// rejecter is an engine of several servers. Reject takes the server that gave a slot's last result out of service, because its values are
// invalid, and reports whether the request can be repeated elsewhere.
type rejecter interface {
	Reject(slot int, reason error) (repeat bool)
}

// slot holds one request. One goroutine at a time uses it.
type slot struct {
	busy    bool
	tuned   atomic.Pointer[head.Decoder] // for the next request; each slot has its own, with scratch memory
	decoder *head.Decoder
	images  []engine.Image // submitted to the engine
	indices []int          // of these images in the request
	copies  ImageBuffers   // images of a GPU that the engine does not read
	result  BatchResult
}

// Wrap returns a predictor of an open engine, which Close closes. An error leaves the engine open.
func Wrap(e engine.Engine, d Decoding) (*Network, error) {
	several, _ := auto.Unwrap(e).(rejecter)
	reader, _ := auto.Unwrap(e).(engine.DeviceReader)
	n := &Network{
		engine: e, rejecter: several, reader: reader, model: Model{Model: e.Model()}, layout: d.Layout, slots: make([]slot, e.Slots()),
	}
	layout, _ := head.ParseLayout(string(d.Layout))
	n.confirmed = layout != head.LayoutAuto
	if layout != head.LayoutCTC && layout != head.LayoutCTCBlankLast {
		n.model.Metadata.Labels = distinctLabels(n.model.Metadata.Labels)
	}
	for i := range n.slots {
		batch := n.model.MaxBatch
		n.slots[i].images, n.slots[i].indices = make([]engine.Image, 0, batch), make([]int, 0, batch)
		n.slots[i].result.Results = make([]Result, 0, batch)
	}
	if err := n.decode(d, 0, len(n.slots)); err != nil {
		return nil, err
	}
	n.model.Recognised = n.slots[0].tuned.Load().Recognised()
	n.unnamed.names = len(n.model.Metadata.Labels)
	n.evidence.model, n.evidence.layout = n.model.Path, n.model.Recognised.Layout
	return n, nil
}

// decode sets new decoders for some slots; an error changes none of them.
func (n *Network) decode(d Decoding, first, count int) error {
	decoders := make([]*head.Decoder, count)
	for i := range decoders {
		var err error
		if decoders[i], err = d.open(&n.model.Model); err != nil {
			return err
		}
	}
	for i, decoder := range decoders {
		n.slots[first+i].tuned.Store(decoder)
	}
	return nil
}

// Model implements Predictor.
func (n *Network) Model() Model { return n.model }

// Engine returns the backend's own engine, for features of that backend. The predictor still owns it.
func (n *Network) Engine() engine.Engine { return auto.Unwrap(n.engine) }

// Alloc implements Predictor.
func (n *Network) Alloc(size int) (*engine.Buffer, error) { return n.engine.Alloc(size) }

// Slots implements Predictor.
func (n *Network) Slots() int { return len(n.slots) }

// Tune implements Predictor. The layout cannot be changed.
func (n *Network) Tune(d Decoding) error { return n.tune(d, 0, len(n.slots)) }

// tune is Tune of some slots.
func (n *Network) tune(d Decoding, first, count int) error {
	layout, err := head.ParseLayout(string(d.Layout))
	if err != nil {
		return settingError{err}
	}
	if has := n.model.Recognised.Layout; layout != head.LayoutAuto && layout != has {
		return settingError{fmt.Errorf("layout %s: the network was opened as %s (open it again)", layout, has)}
	}
	d.Layout = n.layout
	return n.decode(d, first, count)
}

// slot returns a slot by its number.
func (n *Network) slot(op string, number int) (*slot, error) {
	if number < 0 || number >= len(n.slots) {
		return nil, n.refuse(op, engine.ErrShape, "slot %d, there are slots 0 to %d", number, len(n.slots)-1)
	}
	return &n.slots[number], nil
}

func (n *Network) refuse(op string, kind error, format string, arguments ...any) error {
	return &engine.Error{Op: op, Backend: n.model.Backend, Kind: kind, Message: fmt.Sprintf(format, arguments...)}
}

// Submit implements Predictor.
func (n *Network) Submit(number int, images []engine.Image) error {
	s, err := n.slot("submit", number)
	if err != nil {
		return err
	}
	switch {
	case s.busy:
		return n.refuse("submit", nil, "slot %d has a request in flight, wait for it first", number)
	case len(images) < 1 || len(images) > n.model.MaxBatch:
		return n.refuse("submit", engine.ErrShape, "%d images, 1 to %d fit", len(images), n.model.MaxBatch)
	}
	s.images, s.indices = s.images[:0], s.indices[:0]
	s.result.Timing, s.result.Decoding = engine.Timing{}, 0
	s.result.Results = s.result.Results[:len(images)]
	for i := range images {
		at := &s.result.Results[i]
		at.Detections = at.Detections[:0]
		at.Map = nil
		at.Stats = head.Stats{}
		at.Err = images[i].Check()
		if at.Err == nil {
			image, err := n.readable(s, i, &images[i])
			if err != nil {
				return err
			}
			s.images = append(s.images, image)
			s.indices = append(s.indices, i)
		}
	}
	if len(s.images) > 0 {
		if err := n.engine.Submit(number, s.images); err != nil {
			return err
		}
	}
	s.busy = true
	s.decoder = s.tuned.Load()
	return nil
}

// readable returns an image that the engine reads: a copy in host memory if it does not read the image's GPU.
func (n *Network) readable(s *slot, number int, image *engine.Image) (engine.Image, error) {
	if !image.OnDevice() || n.reader != nil && n.reader.ReadsDevice(image.Device.Memory.GPU()) {
		return *image, nil
	}
	memory, err := s.copies.Bytes(n, number, image.HostBytes())
	if err != nil {
		return engine.Image{}, err
	}
	return image.ToHost(memory)
}

// Wait implements Predictor.
func (n *Network) Wait(number int) (*BatchResult, error) {
	s, err := n.slot("wait", number)
	if err != nil {
		return nil, err
	}
	if !s.busy {
		return nil, n.refuse("wait", nil, "slot %d has no request in flight, submit one first", number)
	}
	s.busy = false
	if len(s.images) == 0 {
		return &s.result, nil
	}
	for {
		result, err := n.engine.Wait(number)
		if err != nil && n.perImageErrors && !errors.Is(err, engine.ErrClosed) {
			for _, index := range s.indices {
				s.result.Results[index].Err = err
			}
			return &s.result, nil
		}
		if err != nil {
			return nil, err
		}
		s.result.Timing = result.Timing
		if invalid := n.decodeAll(s, result); invalid == nil || !n.repeat(number, s, invalid) {
			return &s.result, nil
		}
	}
}

// decodeAll decodes the images of a request. It returns the error of an image whose outputs are invalid, nil if there is none.
func (n *Network) decodeAll(s *slot, result *engine.Result) (invalid error) {
	begun := time.Now()
	for i, index := range s.indices {
		at, image := &s.result.Results[index], &s.images[i]
		at.Detections, at.Stats, at.Err = s.decoder.Decode(result, i, image.Width, image.Height, at.Detections)
		if at.Err != nil {
			continue
		}
		at.Map = s.decoder.Map(i)
		n.unnamed.check(at.Detections)
		s.result.Contradiction, at.Err = n.addEvidence(s.decoder, result, i, &at.Stats)
		if at.Err != nil {
			invalid = at.Err
		}
	}
	s.result.Decoding = time.Since(begun)
	return invalid
}

// repeat submits a request with invalid outputs again if another server can answer it. Each repetition takes a server out of service, so
// their number is bounded.
func (n *Network) repeat(number int, s *slot, invalid error) bool {
	if n.rejecter == nil || !n.rejecter.Reject(number, invalid) {
		return false
	}
	return n.engine.Submit(number, s.images) == nil
}

// addEvidence checks the outputs of an image against the head.
func (n *Network) addEvidence(decoder *head.Decoder, result *engine.Result, number int, stats *head.Stats) (*Contradiction, error) {
	badScores := stats.BadScores
	if n.confirmed { // whoever selects semantic knows that places may be of no class
		stats.HeatMaps = 0
	}
	if n.evidence.checksAllScores() {
		if all, err := decoder.CountBadScores(result, number); err == nil {
			badScores = all
		}
	}
	return n.evidence.add(stats, badScores)
}

// Close implements Predictor. It closes the engine.
func (n *Network) Close() error {
	for i := range n.slots {
		n.slots[i].copies.Free()
	}
	return n.engine.Close()
}

package pipeline

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// picky refuses requests that hold an image of that first byte, when they are submitted or when they are waited for.
type picky struct {
	*slowEngine
	refused byte
	late    bool
	pending [2]error
}

func (e *picky) Submit(slot int, images []engine.Image) error {
	var err error
	for i := range images {
		if images[i].Data[0] == e.refused {
			err = errors.New("bad image")
		}
	}
	if err != nil && !e.late {
		return err
	}
	e.pending[slot] = err
	return e.slowEngine.Submit(slot, images)
}

func (e *picky) Wait(slot int) (*engine.Result, error) {
	result, err := e.slowEngine.Wait(slot)
	return result, errors.Join(err, e.pending[slot])
}

// TestABadImageFailsAlone: other cameras' images in the same batch come through, each once and in order, and a camera that goes on with
// bad images costs the others no request more than its own.
func TestABadImageFailsAlone(t *testing.T) {
	for _, late := range []bool{false, true} {
		t.Run(fmt.Sprint("late ", late), func(t *testing.T) {
			notify := make(signal, 1)
			e := &picky{slowEngine: newSlowEngine(0, 4), refused: 199, late: late}
			var cameras []Camera
			var sources []*boxCamera
			for _, name := range []string{"a", "bad", "c", "d"} {
				source := &boxCamera{box: capture.Mailbox{Notify: notify.Signal}}
				defer source.pool.Close()
				sources = append(sources, source)
				cameras = append(cameras, Camera{Name: name, Source: source})
			}
			var seen record
			p := open(t, e, notify, []Sink{&seen}, cameras...)
			requests := 0
			p.Predictor = counted{p.Predictor.(*predict.Network), &requests}
			const rounds = 20
			for round := range rounds {
				for i, source := range sources {
					source.seq = uint64(round)
					if i == 1 && round >= 5 && round < 15 {
						source.seq = 199
					}
					source.put(t)
				}
				for p.gather(&p.requests[0]) {
					p.submit(0)
					p.finish(0)
				}
			}
			for _, camera := range p.Totals() {
				if camera.Camera == "bad" {
					require.EqualValues(t, 10, camera.DroppedError)
					require.EqualValues(t, 10, camera.Inferred)
					continue
				}
				require.Zero(t, camera.DroppedError, camera.Camera)
				require.EqualValues(t, rounds, camera.Inferred)
				require.IsIncreasing(t, seen.seqs[camera.Camera])
			}
			require.LessOrEqual(t, requests, 5+1+4+3*10+5, "the batch is cut where the bad camera's image stands")
		})
	}
}

// counted counts requests.
type counted struct {
	*predict.Network
	requests *int
}

func (c counted) Submit(slot int, images []engine.Image) error {
	*c.requests++
	return c.Network.Submit(slot, images)
}

package sink

import (
	"image"
	"log/slog"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/jpegimage/jpegtest"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/zone"
)

// images are published JPEGs by topic.
type images struct {
	mu  sync.Mutex
	all map[string][]byte
}

func (p *images) add(topic string, jpeg []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all[topic] = slices.Clone(jpeg)
}

func (p *images) Online() bool                            { return true }
func (p *images) Image(_ string, jpeg []byte)             { p.add("scene", jpeg) }
func (p *images) Snapshot(_, label string, jpeg []byte)   { p.add("crop of "+label, jpeg) }
func (p *images) RequestedSnapshot(_ string, jpeg []byte) { p.add("requested", jpeg) }

// TestSnapshotsHidePrivateParts: the scene, the requested image, crops, and what the store is given, with and without a store.
func TestSnapshotsHidePrivateParts(t *testing.T) {
	const width, height = 640, 480
	person := postprocess.Box{X1: 400, Y1: 100, X2: 500, Y2: 400}
	hidden := image.Rect(400, 100, 500, 400)
	car := postprocess.Box{X1: 50, Y1: 100, X2: 200, Y2: 200}
	for _, private := range []bool{false, true} {
		for _, stored := range []bool{false, true} {
			published, to := &images{all: map[string][]byte{}}, &kept{}
			s := &Snapshots{Logger: slog.New(slog.DiscardHandler), Publisher: published}
			if stored {
				s.Store = to
			}
			s.Open([]pipeline.Camera{{Name: "gate"}})
			in := &pipeline.Result{
				Camera: "gate", Width: width, Height: height, Captured: 1, Labels: []string{"person", "car"},
				Frame: jpegtest.Noise(engine.NV12, width, height),
			}
			if private {
				in.Hidden = &pipeline.Hidden{Boxes: []postprocess.Box{person}}
			}
			other := seenObject(2, car)
			other.Class = 1
			in.Events = &zone.Result{Snapshots: []*zone.Object{seenObject(1, person), other}}
			require.NoError(t, s.Request("gate"))
			s.Frame(in)
			s.Close()
			for _, snapshot := range to.all {
				published.all["stored frame of "+snapshot.ID] = snapshot.Frame
			}
			want := 4
			if stored {
				want = 6
				require.Equal(t, published.all["crop of person"], to.all[0].Crop)
				require.Equal(t, published.all["crop of car"], to.all[1].Crop)
			}
			require.Len(t, published.all, want)
			for name, data := range published.all {
				size := jpegtest.Size(t, data)
				part := hidden
				switch {
				case name == "crop of car":
					require.Greater(t, jpegtest.Contrast(t, data, size), 15.0, "it is not private")
					continue
				case name == "crop of person":
					part = hidden.Sub(boxWithMargin(person).Min)
				default:
					require.Greater(t, jpegtest.Contrast(t, data, image.Rect(0, 0, 380, height)), 15.0, "%s: the rest", name)
				}
				if private {
					require.Less(t, jpegtest.Contrast(t, data, part), 4.0, name)
				} else {
					require.Greater(t, jpegtest.Contrast(t, data, part), 15.0, name)
				}
			}
		}
	}
}

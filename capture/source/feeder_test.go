package source

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture"
)

// taking is a decoder that takes units and gives no image.
type taking struct {
	capture.BackgroundDecoder
	taken []int // the first byte of each unit
}

func (d *taking) Submit(unit *capture.Unit) error {
	d.taken = append(d.taken, int(unit.Data[0]))
	return nil
}
func (d *taking) End() error { return nil }
func (d *taking) Next(capture.Lender) (capture.Frame, bool, error) {
	return capture.Frame{}, false, nil
}
func (d *taking) Lost() uint64 { return 0 }

// received is a ring with 30 units that are as old as given, every tenth of them a key frame.
func received(age time.Duration) *capture.Ring {
	r := &capture.Ring{}
	for number := range byte(30) {
		r.Put(capture.Unit{Codec: capture.MJPEG, Data: []byte{number}, Key: number%10 == 0, Received: capture.Monotonic() - int64(age)})
	}
	r.End(io.ErrUnexpectedEOF)
	return r
}

// TestSlowDecodersSkip: a decoder that is seconds behind its camera, and has no other to replace it, goes on with the newest key frame, and
// what it has skipped is counted. One that may be replaced, or that must decode every image, does not skip.
func TestSlowDecodersSkip(t *testing.T) {
	skipped := append([]int{0}, upTo(30)[20:]...)
	for name, test := range map[string]struct {
		age  time.Duration
		skip bool
		want []int
		lost uint64
	}{
		"slow":             {10 * time.Second, true, skipped, 19},
		"fast":             {0, true, upTo(30), 0},
		"slow, every unit": {10 * time.Second, false, upTo(30), 0},
	} {
		t.Run(name, func(t *testing.T) {
			background := &taking{}
			s := &skips{}
			f := &feeder{
				reader: received(test.age).ReaderAt(0), decoder: background, skips: s, done: make(chan struct{}), skipIfSlow: test.skip,
			}
			f.start(t.Context())
			<-f.done
			require.ErrorIs(t, f.err, io.ErrUnexpectedEOF)
			assert.Equal(t, test.want, background.taken)
			assert.Equal(t, test.lost, s.total.Load())

			foreground := &taking{}
			u := &units{ctx: t.Context(), reader: received(test.age).ReaderAt(0), decoder: foreground, skipIfSlow: test.skip}
			var err error
			for err == nil {
				err = u.submit()
			}
			require.ErrorIs(t, err, io.ErrUnexpectedEOF)
			assert.Equal(t, test.want, foreground.taken)
			assert.Equal(t, test.lost, u.skips.total.Load())
		})
	}
}

package capture

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// put adds units of 10 bytes, numbered by their first byte; every period-th is a key frame.
func put(r *Ring, from, to, period int) {
	for i := from; i < to; i++ {
		data := make([]byte, 10)
		data[0] = byte(i)
		r.Put(Unit{Data: data, Key: i%period == 0})
	}
}

func TestRingReaders(t *testing.T) {
	r := &Ring{Bytes: 10 * (10 + unitOverhead)}
	early := r.Reader()
	put(r, 0, 8, 4)
	late := r.Reader()
	next := func(reader *UnitReader, want int) {
		unit, err := reader.Next(t.Context())
		require.NoError(t, err)
		require.Equal(t, byte(want), unit.Data[0])
	}
	next(early, 0)
	next(early, 1)
	for want := 4; want < 8; want++ {
		next(late, want)
	}
	put(r, 8, 23, 4) // 10 remain: 13 to 22
	next(early, 16)
	assert.Equal(t, uint64(14), early.Skipped(), "2 to 15: the first key frame that is left is 16")
	next(late, 16)
	late.Seek()
	next(late, 20)

	ended := errors.New("ended")
	r.End(ended)
	r.End(errors.New("not the first"))
	for want := 21; want < 23; want++ {
		next(late, want)
	}
	_, err := late.Next(t.Context())
	require.ErrorIs(t, err, ended)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = (&Ring{}).Reader().Next(cancelled)
	require.ErrorIs(t, err, context.Canceled)
}

// TestRingKeepsOneUnit: a unit larger than the limit is readable.
func TestRingKeepsOneUnit(t *testing.T) {
	r := &Ring{Bytes: 5}
	put(r, 0, 3, 1)
	unit, err := r.Reader().Next(t.Context())
	require.NoError(t, err)
	assert.Equal(t, byte(2), unit.Data[0])
}

// TestRingConcurrently: readers that wait get every unit.
func TestRingConcurrently(t *testing.T) {
	const units = 2000
	r := &Ring{Bytes: (10 + unitOverhead) * units}
	var all sync.WaitGroup
	for range 4 {
		reader := r.Reader()
		all.Go(func() {
			for i := range units {
				unit, err := reader.Next(t.Context())
				assert.NoError(t, err)
				assert.Equal(t, byte(i), unit.Data[0])
			}
		})
	}
	put(r, 0, units, 10)
	all.Wait()
	assert.LessOrEqual(t, cap(r.units), 2*units)
}

// TestRingReaderAt: a reader begins with the key frame before a time, and units that no such reader needs are removed.
func TestRingReaderAt(t *testing.T) {
	r := &Ring{Keep: 5 * time.Second}
	for i := range 100 { // one unit a second, a key frame every 4 seconds
		r.Put(Unit{Data: []byte{byte(i)}, Key: i%4 == 0, Received: int64(i) * int64(time.Second)})
	}
	for _, test := range []struct{ second, want int }{
		{99, 96}, {96, 96}, {95, 92}, {0, 88}, {200, 96},
	} {
		unit, err := r.ReaderAt(int64(test.second) * int64(time.Second)).Next(t.Context())
		require.NoError(t, err)
		assert.Equal(t, byte(test.want), unit.Data[0], "at %d s", test.second)
	}
	assert.Equal(t, 12*(1+unitOverhead), r.bytes, "5 s before the newest key frame, 96, is 91: 88 is its key frame")

	empty := &Ring{}
	reader := empty.ReaderAt(0)
	put(empty, 1, 6, 4)
	unit, err := reader.Next(t.Context())
	require.NoError(t, err)
	assert.Equal(t, byte(4), unit.Data[0])
}

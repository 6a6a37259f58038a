package transport

import (
	"bytes"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func packet(kind byte, body []byte) []byte {
	return append(binary.AppendUvarint([]byte{kind << 4}, uint64(len(body))), body...)
}

func TestFilter(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for range 60 {
		var in, want []byte
		var sizes, skipped []int
		for range random.IntN(20) {
			kind, body := byte(1+random.IntN(14)), make([]byte, random.IntN(400))
			if random.IntN(10) == 0 {
				body = make([]byte, 20_000+random.IntN(10_000))
			}
			p := packet(kind, body)
			in = append(in, p...)
			if kind == 3 && len(body) > 200 {
				sizes = append(sizes, len(body))
			} else {
				want = append(want, p...)
			}
		}
		for _, reader := range []io.Reader{
			bytes.NewReader(in), iotest.OneByteReader(bytes.NewReader(in)), iotest.DataErrReader(bytes.NewReader(in)),
		} {
			skipped = nil
			got, err := io.ReadAll(iotest.HalfReader(newFilter(reader, 200, func(n int) { skipped = append(skipped, n) })))
			require.NoError(t, err)
			require.True(t, bytes.Equal(want, got))
			require.Equal(t, sizes, skipped)
		}
	}
	for _, bad := range []struct {
		in   []byte
		want error
	}{
		{[]byte{0x30, 0xff, 0xff, 0xff, 0xff, 0x01}, errPacketLength},
		{[]byte{0x30, 0xff}, io.ErrUnexpectedEOF},
		{[]byte{0x30}, io.ErrUnexpectedEOF},
	} {
		_, err := io.ReadAll(newFilter(bytes.NewReader(bad.in), 10, func(int) {}))
		assert.ErrorIs(t, err, bad.want)
	}
}

func FuzzFilter(f *testing.F) {
	f.Add(packet(3, make([]byte, 300)), 100)
	f.Add(append(packet(2, []byte{0, 0}), packet(3, []byte("abc"))...), 1)
	f.Add([]byte{0x30, 0xff, 0xff, 0xff, 0x7f, 0}, 5)
	f.Add(packet(3, []byte("abc")), 1<<28)
	f.Fuzz(func(t *testing.T, data []byte, largest int) {
		got, err := io.ReadAll(newFilter(bytes.NewReader(data), largest, func(n int) { require.Greater(t, n, largest) }))
		require.LessOrEqual(t, len(got), len(data))
		if err == nil && largest >= 1<<28 { // no packet is longer
			require.True(t, bytes.Equal(data, got))
		}
	})
}

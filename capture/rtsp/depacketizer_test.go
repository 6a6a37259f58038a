package rtsp

import (
	"testing"

	"github.com/bluenviron/gortsplib/v5/pkg/description"
	"github.com/bluenviron/gortsplib/v5/pkg/format"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture"
)

// NAL units: only their first bytes matter.
const (
	sps, pps, idr, slice, aud          = "\x67a", "\x68b", "\x65c", "\x41d", "\x09e"
	vps5, sps5, pps5, idr5, slice5     = "\x40\x01a", "\x42\x01b", "\x44\x01c", "\x26\x01d", "\x02\x01e"
	newSPS, newPPS, recovery, delimit5 = "\x67A", "\x68B", "\x06f", "\x46\x01g"
)

func annexB(units ...string) string {
	joined := ""
	for _, unit := range units {
		joined += startCode + unit
	}
	return joined
}

func nal(units ...string) [][]byte {
	all := make([][]byte, len(units))
	for i, unit := range units {
		all[i] = []byte(unit)
	}
	return all
}

func TestParameterSets(t *testing.T) {
	codec, d := newDepacketizer(&description.Media{Formats: []format.Format{
		&format.H264{SPS: []byte(sps), PPS: []byte(pps), PacketizationMode: 1},
	}})
	require.Equal(t, capture.H264, codec)
	n := d.(*nalUnits)
	for _, test := range []struct {
		units [][]byte
		want  string
		key   bool
	}{
		{nal(slice), annexB(slice), false},
		{nal(idr), annexB(sps, pps, idr), true},
		{nal(aud, idr), annexB(aud, sps, pps, idr), true},
		{nal(newSPS, newPPS, idr), annexB(newSPS, newPPS, idr), true},
		{nal(idr, idr), annexB(newSPS, newPPS, idr, idr), true},
		{nal(sps), annexB(sps), false},
		{nal(pps, "", idr), annexB(sps, pps, idr), true},
		{nal(newSPS, newPPS, recovery, slice), annexB(newSPS, newPPS, recovery, slice), true}, // no IDR
	} {
		unit, ok := n.join(test.units)
		require.True(t, ok)
		assert.Equal(t, test.want, string(unit.Data))
		assert.Equal(t, test.key, unit.Key, "%q", test.want)
	}
	_, ok := n.join(nal("", ""))
	assert.False(t, ok)

	codec, d = newDepacketizer(&description.Media{Formats: []format.Format{
		&format.H265{VPS: []byte(vps5), SPS: []byte(sps5), PPS: []byte(pps5)},
	}})
	require.Equal(t, capture.H265, codec)
	n = d.(*nalUnits)
	unit, _ := n.join(nal(slice5))
	assert.False(t, unit.Key)
	unit, _ = n.join(nal(delimit5, idr5))
	assert.True(t, unit.Key)
	assert.Equal(t, annexB(delimit5, vps5, sps5, pps5, idr5), string(unit.Data))

	codec, d = newDepacketizer(&description.Media{Formats: []format.Format{&format.VP8{}}})
	assert.Equal(t, capture.UnknownCodec, codec)
	assert.Nil(t, d)
}

// TestLosses: missing packets are found also where the sequence numbers begin anew; a camera that counts anew has lost nothing.
func TestLosses(t *testing.T) {
	var l losses
	for _, step := range []struct {
		number uint16
		gap    bool
	}{
		{65530, false},
		{65531, false},
		{65534, true},
		{65535, false},
		{0, false},
		{2, true},
		{2, false},
		{1, false},
		{2, false},
		{30000, false},
		{30001, false},
	} {
		l.add(step.number)
		assert.Equal(t, step.gap, l.take(), "%d", step.number)
	}
	l.add(30003)
	l.add(30004)
	assert.True(t, l.take(), "before the last packet of the unit")
}

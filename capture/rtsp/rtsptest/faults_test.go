package rtsptest

import (
	"testing"
	"time"

	"github.com/bluenviron/gortsplib/v5/pkg/format"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestLosePacket: every seventh packet is missing.
func TestLosePacket(t *testing.T) {
	s := start(t, &Server{Files: []string{h264Video(t)}, Rate: 8, Faults: Faults{LosePacket: 7}})
	v := watch(t, s.URL(0))
	before := v.packet().SequenceNumber
	for n := 2; n < 300; n++ {
		if n%7 == 0 {
			before++
			continue
		}
		now := v.packet().SequenceNumber
		require.Equal(t, before+1, now, "packet %d", n)
		before = now
	}
}

// TestLoseFraction: the fraction is kept, and the seed decides which packets are lost.
func TestLoseFraction(t *testing.T) {
	path := h264Video(t)
	gaps := func(seed uint64) (lost []int) {
		s := start(t, &Server{Files: []string{path}, Rate: 8, Faults: Faults{LoseFraction: 0.2, Seed: seed}})
		v := watch(t, s.URL(0))
		first := v.packet().SequenceNumber
		next := 1
		for next < 500 {
			for now := int(v.packet().SequenceNumber - first); next < now; next++ {
				lost = append(lost, next)
			}
			next++
		}
		stats := s.Stats(0)
		assert.InDelta(t, 0.2, float64(stats.Lost)/float64(stats.Lost+stats.Packets), 0.1)
		return lost
	}
	one := gaps(1)
	assert.InDelta(t, 100, len(one), 50)
	assert.NotEqual(t, one, gaps(2))
}

// TestSpoiltUnits: every fifth access unit differs from the file in the way that is asked for, and no other does.
func TestSpoiltUnits(t *testing.T) {
	path := h264Video(t)
	for name, faults := range map[string]Faults{"damage": {DamageUnit: 5}, "truncate": {TruncateUnit: 5}} {
		t.Run(name, func(t *testing.T) {
			s := start(t, &Server{Files: []string{path}, Rate: 8, Faults: faults})
			file, err := load(path, ParametersEverywhere, 0)
			require.NoError(t, err)
			v := watch(t, s.URL(0))
			parts, _ := v.unit()
			first := file.number(parts)
			for n := 1; n < 2*frames; n++ {
				parts, _ := v.unit()
				number := (first + n) % frames
				if (n+1)%5 != 0 {
					require.Equal(t, number, file.number(parts), "unit %d", n)
					continue
				}
				require.Equal(t, -1, file.number(parts), "unit %d", n)
				sent, whole := parts[len(parts)-1], file.units[number].parts[len(parts)-1]
				if name == "damage" {
					require.Len(t, sent, len(whole))
				} else {
					require.Equal(t, whole[:(len(whole)+1)/2], sent)
				}
			}
		})
	}
}

// TestSilence: a silent server answers, and goes on later.
func TestSilence(t *testing.T) {
	s := start(t, &Server{Files: []string{h264Video(t)}, Silent: true})
	v := watch(t, s.URL(0))
	watch(t, s.URL(0)) // another client is answered
	assert.Equal(t, 2, s.Stats(0).Playing)
	assert.Zero(t, s.Stats(0).Packets)
	s.SetSilent(false)
	_, before := v.unit()
	s.SetSilent(true)
	stats := s.Stats(0)
	time.Sleep(100 * time.Millisecond) // nothing may come, so that a slow machine passes as well
	assert.Equal(t, stats.Units, s.Stats(0).Units)
	s.SetSilent(false)
	require.Eventually(t, func() bool {
		_, p := v.unit()
		return p.Timestamp-before.Timestamp > ticksPerSecond/10
	}, patience, time.Millisecond, "the stream went on")
}

// TestCloseAfter: the connection ends; another may follow.
func TestCloseAfter(t *testing.T) {
	s := start(t, &Server{Files: []string{h264Video(t)}, Faults: Faults{CloseAfter: 50 * time.Millisecond}})
	for range 2 {
		v, err := connect(t, s.URL(0))
		if err == nil { // on a slow machine it ends before PLAY is answered
			err = v.client.Wait()
		}
		require.Error(t, err)
	}
	require.Eventually(t, func() bool { return s.Stats(0).Playing == 0 }, patience, time.Millisecond)
	assert.Equal(t, 2, s.Stats(0).Connections)
}

// TestSecondFile: the stream goes on with a key frame of the second file, later timestamps, and a new SDP.
func TestSecondFile(t *testing.T) {
	first, second := h264Video(t), h264Video(t, "-s", "160x120", "-bf", "0")
	one, err := load(first, ParametersEverywhere, 0)
	require.NoError(t, err)
	other, err := load(second, ParametersEverywhere, 0)
	require.NoError(t, err)
	var s *Server
	var v *viewer
	var parts [][]byte
	var p received
	for after := time.Second; one.number(parts) < 0; after *= 2 { // until the viewer is there before the second file
		s = start(t, &Server{Files: []string{first}, Second: second, SecondAfter: after})
		v = watch(t, s.URL(0))
		parts, p = v.unit()
	}
	newest := p.Timestamp
	for one.number(parts) >= 0 {
		newest = max(newest, p.Timestamp)
		parts, p = v.unit()
	}
	for n := range 2 * frames {
		require.Equal(t, n%frames, other.number(parts))
		require.Greater(t, p.Timestamp, newest)
		newest = p.Timestamp
		parts, p = v.unit()
	}
	assert.Equal(t, other.sets[0], watch(t, s.URL(0)).format.(*format.H264).SPS)
}

package mqtt

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestWhatABrokerTakesIsFoundOut(t *testing.T) {
	now := time.Now()
	l := &packetLimits{}
	limit := func() int { return l.Limit("b", now) }
	assert.Equal(t, math.MaxInt, limit())
	assert.Zero(t, l.Lost("b", 0, now))
	assert.Zero(t, l.Lost("b", suspectSize-1, now), "restarts of the broker say nothing of small packets")
	assert.Zero(t, l.Lost("b", suspectSize-1, now))
	assert.Zero(t, l.Lost("b", 200_000, now))
	l.Confirm("b", 200_000)
	assert.Zero(t, l.Lost("b", 200_000, now), "it was not the packet")
	assert.Zero(t, l.Lost("b", 300_000, now))
	assert.Equal(t, math.MaxInt, limit(), "once may be chance")
	assert.Zero(t, l.Lost("b", 100, now))
	assert.Zero(t, l.Lost("b", 300_000, now))
	assert.Equal(t, 300_000, l.Lost("b", 310_000, now))
	assert.Equal(t, 300_000, limit())
	assert.Equal(t, math.MaxInt, l.Limit("another", now))
	now = now.Add(limitLifetime + 1)
	assert.Equal(t, math.MaxInt, limit(), "somebody may have raised it")
	l.MaxPacket = 1000
	assert.Equal(t, 1001, limit())
	largest, _ := l.Read()
	assert.Equal(t, 200_000, largest)
}

// A broker that is started anew with a lower limit refuses what it took before.
func TestABrokerTakesLessThanItDid(t *testing.T) {
	now := time.Now()
	l := &packetLimits{}
	l.Confirm("b", 200_000)
	for range doubtLimit - 1 {
		assert.Zero(t, l.Lost("b", 180_000, now))
	}
	l.Confirm("b", 180_000)
	for range doubtLimit {
		assert.Zero(t, l.Lost("b", 180_000, now), "it took one again")
		l.Confirm("b", 20_000)
	}
	assert.Zero(t, l.Lost("b", 190_000, now))
	assert.Equal(t, 180_000, l.Lost("b", 180_000, now))
}

func TestUnconfirmedPackets(t *testing.T) {
	var u unconfirmedPackets
	assert.Nil(t, u.Begin(suspectSize-1))
	first := u.Begin(20_000)
	before := u.Mark()
	u.Written(nil)
	u.Written(first)
	behind := u.Mark()
	second := u.Begin(40_000) // is being written
	assert.Equal(t, 40_000, u.Largest())
	assert.Zero(t, u.Confirm(nil, before), "what is answered may have come before the first")
	assert.Equal(t, 20_000, u.Confirm(nil, behind))
	assert.Equal(t, 40_000, u.Largest())
	third := u.Begin(30_000)
	u.Written(second)
	assert.Equal(t, 30_000, u.Confirm(third, behind))
	assert.Equal(t, 40_000, u.Confirm(nil, u.Mark()))
	assert.Zero(t, u.Largest())
}

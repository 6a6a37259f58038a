package packetsize

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestWhatABrokerTakesIsFoundOut(t *testing.T) {
	now := time.Now()
	l := &Limits{}
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
	now = now.Add(limitTime + 1)
	assert.Equal(t, math.MaxInt, limit(), "somebody may have raised it")
	l.Most = 1000
	assert.Equal(t, 1001, limit())
	largest, _ := l.Read()
	assert.Equal(t, 200_000, largest)
}

func TestUnconfirmedPackets(t *testing.T) {
	var u Unconfirmed
	assert.Nil(t, u.Begin(suspectSize-1))
	first := u.Begin(20_000)
	one := u.Written(nil)
	two := u.Written(first)
	third := u.Begin(40_000) // is being written
	assert.Equal(t, 40_000, u.Largest())
	assert.Zero(t, u.Confirm(one))
	assert.Equal(t, 20_000, u.Confirm(two))
	assert.Equal(t, 40_000, u.Largest())
	assert.Equal(t, 40_000, u.Confirm(u.Written(third)))
	assert.Zero(t, u.Largest())
}

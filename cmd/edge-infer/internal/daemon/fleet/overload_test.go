package fleet

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestShortage(t *testing.T) {
	for name, c := range map[string]struct {
		after demand
		want  float64
	}{
		"keeps up":                       {demand{captured: 300, done: 300, interval: 1}, 0},
		"a third is lost":                {demand{captured: 300, dropped: 100, done: 200, interval: 1}, 1. / 3},
		"nothing moved":                  {demand{captured: 300, dropped: 2, done: 298, interval: 1}, 2. / 300},
		"lost frames that nobody wanted": {demand{captured: 300, dropped: 200, done: 50, rate: 5, interval: 1}, 0},
		"less than the rate":             {demand{captured: 300, dropped: 270, done: 30, rate: 5, interval: 1}, 0.4},
		"every third, kept":              {demand{captured: 300, dropped: 50, done: 100, interval: 3}, 0},
		"no image":                       {demand{interval: 1}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			assert.InDelta(t, c.want, c.after.shortage(&demand{}, 10*time.Second), 1e-9)
		})
	}
	anew := demand{captured: 300, done: 2300, interval: 1}
	assert.Zero(t, anew.shortage(&demand{captured: 3000, dropped: 5, done: 2000}, 10*time.Second), "a reload has begun the camera anew")
}

func TestOverloadIsToldOnceAndItsEndToo(t *testing.T) {
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	o, now := overload{}, time.Unix(0, 0)
	var sum demand
	check := func(dropped uint64) {
		sum.captured, sum.dropped, sum.done, sum.interval = sum.captured+300, sum.dropped+dropped, sum.done+300-dropped, 1
		now = now.Add(10 * time.Second)
		o.check(logger, now, map[string]demand{"gate": sum})
	}
	check(300) // there is nothing to compare with yet
	check(0)
	assert.Empty(t, log.String())
	check(72)
	check(90)
	check(10) // better, not well
	assert.Equal(t, 1, strings.Count(log.String(), "\n"))
	assert.Contains(t, log.String(), `camera=gate lost=24%`)
	check(0)
	check(0)
	assert.Equal(t, 2, strings.Count(log.String(), "\n"))
	assert.Contains(t, log.String(), "keeps up with the cameras again")
	o.check(logger, now.Add(time.Second), nil) // no camera is left
	assert.Equal(t, 2, strings.Count(log.String(), "\n"))
}

package capture

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// lines is a journal and what it has written, without the times.
func lines() (*healthLog, func() []string) {
	var out bytes.Buffer
	handler := slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == slog.LevelKey {
			return slog.Attr{}
		}
		return a
	}})
	return &healthLog{logger: slog.New(handler), camera: "gate"}, func() []string {
		written := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		out.Reset()
		return written
	}
}

func TestHealthLogOfLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, written := lines()
		j.running()
		time.Sleep(time.Hour)
		j.failed(Lost, errors.New("the stream ended"), 400*time.Millisecond)
		for port := range 100 { // ten minutes less a few seconds
			time.Sleep(5900 * time.Millisecond)
			j.failed(Waiting, fmt.Errorf("read tcp 10.0.0.2:%d->10.0.0.9:554: no route after 1.%ds", 40000+port, port), 6*time.Second)
		}
		assert.Equal(t, []string{
			`msg="camera lost" camera=gate error="the stream ended" retry=400ms`,
			`msg="camera unavailable" camera=gate error="read tcp 10.0.0.2:40000->10.0.0.9:554: no route after 1.0s" retry=6s`,
		}, written())
		for range 24 * 600 {
			time.Sleep(6 * time.Second)
			j.failed(Waiting, errors.New("the stream ended"), 6*time.Second)
		}
		assert.Equal(t, []string{
			`msg="camera still failing" camera=gate error="the stream ended" failures=104 for=10m8s`,
			`msg="camera still failing" camera=gate error="the stream ended" failures=304 for=30m8s`,
			`msg="camera still failing" camera=gate error="the stream ended" failures=704 for=1h10m8s`,
			`msg="camera still failing" camera=gate error="the stream ended" failures=1504 for=2h30m8s`,
			`msg="camera still failing" camera=gate error="the stream ended" failures=3104 for=5h10m8s`,
			`msg="camera still failing" camera=gate error="the stream ended" failures=6304 for=10h30m8s`,
			`msg="camera still failing" camera=gate error="the stream ended" failures=12704 for=21h10m8s`,
		}, written())
		time.Sleep(time.Second)
		j.running()
		j.running()
		assert.Equal(t, []string{`msg="camera recovered" camera=gate failures=14501 after=24h9m51s`}, written())

		time.Sleep(stableAfter)
		j.running()
		time.Sleep(time.Second)
		j.failed(Lost, errors.New("the stream ended"), 400*time.Millisecond)
		lost := `msg="camera lost" camera=gate error="the stream ended" retry=400ms`
		assert.Equal(t, []string{lost}, written(), "after a while with images a loss is news")
	})
}

// TestHealthLogOfFlappingCamera: a camera that comes and goes is logged at growing intervals.
func TestHealthLogOfFlappingCamera(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, written := lines()
		for range 60 * 6 { // an hour
			j.running()
			time.Sleep(5 * time.Second)
			j.running()
			j.failed(Lost, errors.New("the stream ended"), 5*time.Second)
			time.Sleep(5 * time.Second)
		}
		assert.Equal(t, []string{
			`msg="camera lost" camera=gate error="the stream ended" retry=5s`,
			`msg="camera recovered" camera=gate failures=1 after=5s`,
			`msg="camera still failing" camera=gate error="the stream ended" failures=61 for=10m0s`,
			`msg="camera recovered" camera=gate failures=61 after=10m5s`,
			`msg="camera still failing" camera=gate error="the stream ended" failures=181 for=30m0s`,
			`msg="camera recovered" camera=gate failures=181 after=30m5s`,
		}, written())
		for n := range 100 {
			time.Sleep(time.Second)
			j.failed(Lost, errors.New(strings.Repeat("x", n+1)), time.Second)
		}
		assert.Len(t, written(), maxReasons-1, "reasons that do not end")
	})
}

func TestHealthLogOfDamage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, written := lines()
		j.damaged(0, "")
		for n := range uint64(3600 * 5) { // an hour of five a second
			time.Sleep(200 * time.Millisecond)
			j.damaged(n+1, "not an image")
		}
		assert.Equal(t, []string{
			`msg="damaged images" camera=gate count=1 reason="not an image"`,
			`msg="damaged images" camera=gate count=3000 reason="not an image"`,
			`msg="damaged images" camera=gate count=6000 reason="not an image"`,
		}, written())
	})
}

func TestNormalize(t *testing.T) {
	same := [][2]string{
		{"read tcp 127.0.0.1:43210->127.0.0.1:554: reset", "read tcp 127.0.0.1:9->127.0.0.1:554: reset"},
		{"dial [fe80::1%eth0]:554: refused", "dial [fe80::2%eth0]:8554: refused"},
		{"no image for 10s", "no image for 1m20s"},
		{"no image for 500ms", "no image for 1.5s"},
		{"image of 30000x30000", "image of 1x40000"},
	}
	for _, pair := range same {
		assert.Equal(t, normalize(pair[0]), normalize(pair[1]))
	}
	assert.NotEqual(t, normalize("no image for 5s"), normalize("no first image for 5s"))
	assert.NotEqual(t, normalize("the server answers 404 Not Found"), normalize("the server answers 503 Service Unavailable"))
}

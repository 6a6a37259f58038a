package main

import (
	"context"
	"io"
	"math"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRecord(t *testing.T) {
	r := newRecord(10)
	require.NoError(t, r.read(strings.NewReader(`{"v":1,"camera":"a","seq":5,"latency_ms":20}
{"v":1,"camera":"a","seq":6,"latency_ms":100.5}
not JSON
{"v":1,"camera":"b","seq":0,"latency_ms":1}
{"v":1,"camera":"a","seq":9,"latency_ms":30}
{"v":1,"camera":"a","seq":0,"latency_ms":30}
{"v":1,"device":"soak","stats":{}}
`)))
	assert.Equal(t, map[string]span{"a": {frames: 4, late: 1, lost: 2}, "b": {frames: 1}}, r.spans())
	assert.InDelta(t, 30, r.quantile("a", 50), 0.1)
	assert.True(t, math.IsNaN(r.quantile("c", 50)))
	s := r.spans()["a"].since(span{frames: 2, late: 1}, 4*time.Second)
	assert.InDelta(t, 0.5, s.rate(), 1e-9)
	assert.InDelta(t, 0.5, s.lateShare(), 1e-9, "two of four were lost")
}

func TestTrend(t *testing.T) {
	parts := make([]series, 3)
	for i := range 600 {
		s := &parts[i/200]
		s.hours = append(s.hours, float64(i)/3600)
		s.megabytes = append(s.megabytes, 100+6*float64(i)/3600+float64(i%2)+30*float64(i/400)) // the last part is 30 MB higher
	}
	m := trend(parts)
	assert.InDelta(t, 6, m.slope, m.uncertainty)
	assert.Less(t, m.uncertainty, 4.0)
	assert.InDelta(t, 100, m.first, 1e-9)
	assert.InDelta(t, 131+6*599.0/3600, m.last, 1e-9)
	assert.InDelta(t, m.last, m.max, 1e-9)
	assert.InDeltaSlice(t, []float64{-1, 29}, m.steps, 0.01)
	assert.True(t, math.IsInf(trend([]series{{}, {hours: []float64{1, 2}, megabytes: []float64{1, 1}}}).uncertainty, 1))
}

func TestMemoryIsWatchedBetweenChanges(t *testing.T) {
	w := watchMemory(func() (float64, bool) { return 0, false })
	w.add(0, 1)
	w.begin()
	w.add(1, 2)
	w.change()
	w.add(2, 3)
	w.begin()
	w.add(3, 4)
	w.add(4, 5)
	w.end()
	assert.Equal(t, []series{{[]float64{1}, []float64{2}}, {[]float64{3, 4}, []float64{4, 5}}}, w.parts)
}

func TestResident(t *testing.T) {
	rss, ok := resident(os.Getpid())
	assert.True(t, ok)
	assert.Greater(t, rss, 1.0)
	_, ok = resident(-1)
	assert.False(t, ok)
}

func TestGPUMemory(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, ok := gpuUsed()
	assert.False(t, ok, "there is no nvidia-smi")
	script := "#!/bin/sh\necho 1000\n"
	require.NoError(t, os.WriteFile(filepath.Join(os.Getenv("PATH"), "nvidia-smi"), []byte(script), 0o755))
	used, ok := gpuUsed()
	assert.True(t, ok)
	assert.InDelta(t, 1048.576, used, 1e-6)
	s := &report{}
	(&memory{uncertainty: math.Inf(1)}).judge(s, "memory")
	assert.NotEqual(t, met, s.Rows[0].Verdict, "what was not read is not met")
}

func TestSoakJudges(t *testing.T) {
	o := &soak{cameras: 2, fps: 10, faults: true}
	windows := o.windows(&subject{}, &mosquitto{}, &faultyCameras{})
	good := span{frames: 100, took: 10 * time.Second}
	var counted []map[string]span
	for i := range windows {
		slow := good
		if i == 2 {
			slow.frames = 90
		}
		counted = append(counted, map[string]span{"steady1": good, "steady2": slow, "stalls": {}})
	}
	seen := newRecord(10)
	for i := range 1000 {
		seen.frame("reopened", uint64(i), 1)
	}
	s := &report{}
	o.gpu = true
	used := []memory{{slope: 9, uncertainty: 2}, {slope: 11, uncertainty: 2}}
	o.judge(s, windows, counted, used, map[string]int{"steady1": 1}, seen)
	verdicts := map[string]string{}
	for _, r := range s.Rows {
		if r.Verdict != "" {
			verdicts[r.What] = r.Verdict
		}
	}
	rate := ": rate of the others / rate without faults"
	assert.Equal(t, map[string]string{
		"frames late or lost": met, "fairness, least / most served": met, "resident memory, slope between changes": met,
		"memory in use on the GPU, slope between changes": missed,
		"frame buffers never returned":                    missed, "broker stopped" + rate: met, "a camera stalls" + rate: missed,
		"a camera changes its resolution" + rate: met, "a camera is opened again and again" + rate: met, "openings of a camera": met,
	}, verdicts)
	o.faults = false
	s = &report{}
	o.judge(s, o.windows(&subject{}, &mosquitto{}, &faultyCameras{}), counted[:1], used, nil, seen)
	assert.Equal(t, "frame buffers never returned", s.Rows[len(s.Rows)-1].What)
	assert.ErrorIs(t, runSoak(t.Context(), []string{"-program", "x", "-size", "big"}), usage{})
	assert.ErrorIs(t, runSoak(t.Context(), []string{"-program", "x", "-duration", "1s"}), usage{})
}

// TestMain stands in for main where a test starts this program's own broker.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "broker" {
		if err := run(context.Background(), os.Args[1:]); err != nil {
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func TestOwnBrokerStopsAndGoesOn(t *testing.T) {
	b, err := (&soak{faults: true}).openBroker(t.Context(), t.TempDir())
	require.NoError(t, err)
	defer b.close()
	connection, err := net.Dial("tcp", b.address)
	require.NoError(t, err)
	defer connection.Close()
	require.NoError(t, b.pause(t.Context()))
	_, err = connection.Write([]byte{0x10, 0x0d, 0, 4, 'M', 'Q', 'T', 'T', 4, 2, 0, 0, 0, 1, 'a'}) // CONNECT
	require.NoError(t, err)
	require.NoError(t, b.resume(t.Context()))
	answer := make([]byte, 4)
	_, err = io.ReadFull(connection, answer)
	require.NoError(t, err)
	assert.Equal(t, []byte{0x20, 2, 0, 0}, answer, "CONNACK")
}

package update

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"aead.dev/minisign"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/bundle"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/judge"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/evaluate"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// cameras stand for a fleet that runs a model, and for its judge.
type cameras struct {
	running  string // file
	used     []string
	health   func(file string) Health
	unusable error // of UseModel with another file than the first
	answer   judge.Report
	failure  error // of the judge
	judged   int
	waits    error
	begun    time.Time
}

func (c *cameras) Comparison(string) (judge.Request, error) {
	return judge.Request{Running: judge.Model{Path: c.running}}, c.waits
}

func (c *cameras) UseModel(_ context.Context, _ string, files judge.Model) error {
	if c.unusable != nil && len(c.used) == 0 {
		return c.unusable
	}
	c.running = files.Path
	c.used = append(c.used, files.Path)
	return nil
}

// Health is that of 20 frames per second of which half are inferred.
func (c *cameras) Health(_, file string) Health {
	if c.health != nil && len(c.used) > 0 {
		return c.health(file)
	}
	seconds := uint64(time.Since(c.begun).Seconds())
	return Health{Devices: 1, Captured: 20 * seconds, Inferred: 10 * seconds}
}

func (c *cameras) HasModel(_, camera string) bool { return camera == "gate" }

func (c *cameras) Run(_ context.Context, _ judge.Request, images [][]byte, _ func(string)) (*judge.Report, error) {
	c.judged++
	report := c.answer
	report.Agreement.Images = len(images)
	return &report, c.failure
}

// bench is an updater with the bundle belt, version 2, at its source.
type bench struct {
	*cameras
	*Updater
	settings config.Bundle
}

func newBench(t *testing.T) *bench {
	t.Setenv("CACHE_DIRECTORY", t.TempDir())
	public, secret, err := minisign.GenerateKey(nil)
	require.NoError(t, err)
	text, err := secret.MarshalText()
	require.NoError(t, err)
	dir := t.TempDir()
	key, file := filepath.Join(dir, "key"), filepath.Join(dir, "belt.tar")
	require.NoError(t, os.WriteFile(key, text, 0o600))
	_, err = (&bundle.Make{
		Model: "../../../../engine/enginetest/testdata/detector.onnx", Name: "belt", Version: 2, Sign: []string{key}, Output: file,
	}).Run(t.Context())
	require.NoError(t, err)
	b := &bench{cameras: &cameras{running: "old"}, settings: config.Bundle{
		From: file, Keys: []string{public.String()}, Every: time.Hour, Trial: time.Minute, Agreement: 0.5,
	}}
	b.answer.Agreement = evaluate.AgreementReport{MatchRate: 0.9, Reference: 40}
	b.Updater = &Updater{
		State: t.TempDir(), Fleet: b.cameras, Judge: b.cameras, Logger: slog.New(slog.DiscardHandler), Restart: func() { t.Error("restart") },
	}
	return b
}

// once updates once while a camera delivers images.
func (b *bench) once(t *testing.T) {
	b.Open(b.settings)
	b.begun = time.Now()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var rest sync.WaitGroup
	defer rest.Wait()
	rest.Go(func() { b.Encode(ctx) })
	rest.Go(func() {
		for sleep(ctx, 50*time.Millisecond) == nil {
			b.Frame(frame("gate", true))
		}
	})
	_, err := b.Updater.once(ctx, &b.settings, nil)
	cancel()
	require.NoError(t, err)
}

func frame(camera string, object bool) *pipeline.Result {
	r := &pipeline.Result{
		Camera: camera, Captured: time.Now().UnixNano(),
		Frame: &capture.Frame{Width: 16, Height: 16, Stride: 48, Format: engine.BGR, Data: make([]byte, 16*48)},
	}
	if object {
		r.Detections = []postprocess.Detection{{Score: 0.9}}
	}
	return r
}

// TestOutcomes: what is wrong with a model, before its trial and in it, and that the model before runs on then.
func TestOutcomes(t *testing.T) {
	steady := func(b *bench) Health {
		seconds := uint64(time.Since(b.begun).Seconds())
		return Health{Devices: 1, Captured: 20 * seconds, Inferred: 10 * seconds}
	}
	for _, test := range []struct {
		name    string
		prepare func(*bench)
		reason  string
		tried   bool // it ran
	}{
		{"good", func(*bench) {}, "", true},
		{
			"unsuitable", func(b *bench) { b.answer.Unsuitable = "it is a network for birds" },
			"it is a network for birds (edge-infer bundle pull", false,
		},
		{"other objects", func(b *bench) { b.answer.Agreement.MatchRate = 0.4 }, "it finds other objects than the running model: 0.400", false},
		{"as accurate", func(b *bench) { b.answer.Labelled = &judge.Labelled{Images: 5, Running: 0.6, Candidate: 0.595} }, "", true},
		{
			"less accurate", func(b *bench) { b.answer.Labelled = &judge.Labelled{Images: 5, Running: 0.6, Candidate: 0.5} },
			"it is less accurate on the 5 labelled images of its bundle: mAP50-95 0.500, the running model has 0.600", false,
		},
		{"without a comparison", func(b *bench) { b.settings.Agreement, b.answer.Agreement.MatchRate = 0, 0 }, "", true},
		{
			"judge crashes", func(b *bench) { b.failure = errors.New("the process that judges it crashes") },
			"the process that judges it crashes", false,
		},
		{
			"too slow", func(b *bench) { b.answer.Running, b.answer.Candidate = 50*time.Millisecond, 200*time.Millisecond },
			"frames per second: 200ms per image, the running model takes 50ms", false,
		},
		{"slower, with time to spare", func(b *bench) { b.answer.Running, b.answer.Candidate = time.Millisecond, 5*time.Millisecond }, "", true},
		{"cannot be opened", func(b *bench) { b.unusable = errors.New("out of memory") }, "out of memory", false},
		{
			"network fails", func(b *bench) {
				b.health = func(string) Health { return Health{Err: errors.New("network failed: no kernel")} }
			}, "on trial: network failed: no kernel", true,
		},
		{
			"frames fail", func(b *bench) {
				b.health = func(string) Health {
					h := steady(b)
					h.Failed = h.Inferred / 50
					return h
				}
			}, "frames failed", true,
		},
		{
			"frames are lost", func(b *bench) {
				b.health = func(string) Health {
					h := steady(b)
					h.Inferred /= 2
					return h
				}
			}, "of the cameras' frames were inferred, 50 % before", true,
		},
		{
			"one frame fails", func(b *bench) {
				b.health = func(string) Health {
					h := steady(b)
					h.Failed = 1
					return h
				}
			}, "", true,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t)
			test.prepare(b)
			synctest.Test(t, func(t *testing.T) { b.once(t) })
			last := b.Status().Last
			require.NotNil(t, last)
			installed := bundle.Installed(b.store, "belt")
			if test.reason == "" {
				assert.Empty(t, last.Reason)
				require.NotNil(t, installed)
				assert.EqualValues(t, 2, installed.Version)
				assert.EqualValues(t, 2, b.Status().Version)
				assert.Equal(t, b.store.Path("belt"), b.running)
			} else {
				assert.Contains(t, last.Reason, test.reason)
				assert.Nil(t, installed)
				assert.Equal(t, "old", b.running)
				assert.Contains(t, b.Status().Trouble(), test.reason)
			}
			assert.Equal(t, test.tried, len(b.used) > 0)
			assert.Empty(t, b.store.Candidate("belt"))
			remembered, err := ReadOutcome(b.State)
			require.NoError(t, err)
			assert.Equal(t, last.Reason, remembered.Reason)
			judged := b.judged
			synctest.Test(t, func(t *testing.T) { b.once(t) })
			assert.Equal(t, judged, b.judged, "what was refused or is installed is not judged again")
		})
	}
}

// TestAModelThatEndsTheProgramIsRefused: its trials are counted, and those that somebody has ended are not.
func TestAModelThatEndsTheProgramIsRefused(t *testing.T) {
	b := newBench(t)
	for range mostTrials {
		synctest.Test(t, func(t *testing.T) {
			b.Open(b.settings)
			ctx, cancel := context.WithCancel(t.Context())
			b.health = func(string) Health {
				cancel()
				return Health{}
			}
			b.settings.Agreement = 0
			_, err := b.Updater.once(ctx, &b.settings, nil)
			require.ErrorIs(t, err, context.Canceled)
		})
	}
	assert.Zero(t, b.memory.Trials)
	b.memory.Trials = mostTrials // the process was killed so often
	require.NoError(t, b.memory.save(b.State))
	b.health, b.used = nil, nil
	synctest.Test(t, func(t *testing.T) { b.once(t) })
	assert.Contains(t, b.Status().Last.Reason, "the program has ended 3 times while it was on trial")
	assert.Empty(t, b.used)
}

// TestOnlySignedBundlesWithAStateDirectory: each with one line that names a remedy.
func TestOnlySignedBundlesWithAStateDirectory(t *testing.T) {
	for want, change := range map[string]func(*bench){
		"bundle.keys has no key":        func(b *bench) { b.settings.Keys = nil },
		"there is no state directory":   func(b *bench) { b.State = "" },
		"belt.tar":                      func(b *bench) { require.NoError(t, os.WriteFile(b.settings.From, []byte("no bundle"), 0o600)) },
		"name a public key of minisign": func(b *bench) { b.settings.Keys = []string{"/none"} },
	} {
		b := newBench(t)
		change(b)
		b.Open(b.settings)
		_, err := b.Updater.once(t.Context(), &b.settings, nil)
		require.ErrorContains(t, err, want)
		assert.Equal(t, 3, b.checked(err, 2))
		assert.Contains(t, b.Status().Trouble(), want)
		assert.Empty(t, b.used)
	}
}

// TestMostImagesShowObjects: of cameras with the model, with a pause, and no more than are needed.
func TestMostImagesShowObjects(t *testing.T) {
	s := newSampler()
	c := &collection{has: func(camera string) bool { return camera == "gate" }, objects: true, pause: int64(time.Second)}
	s.Frame(frame("gate", true)) // nothing is collected
	s.begin(c)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.Run(ctx)
	}()
	at := int64(0)
	give := func(camera string, object bool, step time.Duration) {
		in := frame(camera, object)
		at += int64(step)
		in.Captured = at
		wait := <-s.lend // the one before is encoded
		s.lend <- wait
		s.Frame(in)
	}
	give("door", true, 2*time.Second)
	for range 2 * sampleImages {
		give("gate", false, 2*time.Second)
	}
	wait := <-s.lend
	s.lend <- wait
	assert.Len(t, c.taken(), sampleImages/emptyShare)
	give("gate", true, time.Millisecond) // after the last without an object was refused, the pause is over
	give("gate", true, time.Millisecond)
	wait = <-s.lend
	s.lend <- wait
	assert.Len(t, c.taken(), sampleImages/emptyShare+1)
	for range sampleImages {
		give("gate", true, 2*time.Second)
	}
	<-c.done
	assert.Len(t, c.taken(), sampleImages)
	s.end()
	give("gate", true, 2*time.Second)
	cancel()
	<-ended
}

func TestSourcesAreShownWithoutSecrets(t *testing.T) {
	for from, want := range map[string]string{
		"registry.example.org/belt:stable":           "registry.example.org/belt:stable",
		"/srv/belt.tar":                              "/srv/belt.tar",
		"https://ada:secret@example.org/b.tar?key=1": "https://example.org/b.tar",
	} {
		assert.Equal(t, want, shownSource(from))
	}
}

func TestPausesAfterFailures(t *testing.T) {
	for range 100 {
		between := func(low, high, pause time.Duration) { assert.True(t, low <= pause && pause <= high, pause) }
		between(54*time.Minute, time.Hour, pauseAfter(time.Hour, 0))
		between(30*time.Second, time.Minute, pauseAfter(time.Hour, 1))
		between(30*time.Minute, time.Hour, pauseAfter(24*time.Hour, 50))
		between(time.Second, time.Second, pauseAfter(time.Second, 5))
	}
}

func FuzzMemory(f *testing.F) {
	f.Add([]byte(`{"trying": "sha256:1", "trials": 2, "last": {"model": "belt", "reason": "x"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, fileName), data, 0o600))
		m, err := readMemory(dir)
		if err != nil {
			return
		}
		require.NoError(t, m.save(dir))
		again, err := readMemory(dir)
		require.NoError(t, err)
		require.Equal(t, m.Trying, again.Trying)
	})
}

// TestFewFramesSayLittle: a frame that is under way at the end of a short trial is not one that a model has missed.
func TestFewFramesSayLittle(t *testing.T) {
	usual := pace{share: 1, inferred: 3}
	require.NoError(t, wrong(usual, pace{share: 2. / 3, inferred: 2, missed: 1}, nil, true))
	require.ErrorContains(t, wrong(usual, pace{share: 2. / 3, inferred: 20, missed: 10}, nil, true), "67 % of the cameras' frames were")
	require.NoError(t, wrong(usual, pace{share: 2. / 3, inferred: 20, missed: 10}, nil, false))
}

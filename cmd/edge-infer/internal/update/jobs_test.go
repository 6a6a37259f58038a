package update

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/bundle"
	"github.com/edge-infer/edge-infer/mqtt/payload"
)

// patience is how long anything may take on a loaded machine.
const patience = time.Minute

// reports are what an updater reports of jobs.
type reports struct {
	mu  sync.Mutex
	all map[string][]*payload.JobUpdate
}

func (r *reports) add(_ Sender, job string, update *payload.JobUpdate) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all[job] = append(r.all[job], update)
}

func (r *reports) of(job string) []*payload.JobUpdate {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all[job][:len(r.all[job]):len(r.all[job])]
}

// last waits for the last report of a job and returns it, also if it has been removed since.
func (r *reports) last(t *testing.T, job string) (last *payload.JobUpdate) {
	t.Helper()
	newest := func() (update *payload.JobUpdate) {
		for _, one := range r.of(job) {
			if one != nil && one.Status.Final() {
				update = one
			}
		}
		return update
	}
	require.Eventually(t, func() bool { return newest() != nil }, patience, time.Millisecond, job)
	return newest()
}

// working runs an updater for jobs alone, whose bundle is on a web server.
func working(t *testing.T, prepare func(*bench)) (*bench, *reports, string) {
	b, r := newBench(t), &reports{all: map[string][]*payload.JobUpdate{}}
	server := httptest.NewServer(http.FileServer(http.Dir(strings.TrimSuffix(b.settings.From, "belt.tar"))))
	t.Cleanup(server.Close)
	b.settings.From, b.settings.Trial, b.settings.Agreement = "", 20*time.Millisecond, 0
	b.Updater.Report = r.add
	prepare(b)
	b.Open(b.settings)
	ctx, cancel := context.WithCancel(t.Context())
	var ended sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		ended.Wait()
	})
	ended.Go(func() { b.Updater.Run(ctx) })
	return b, r, server.URL + "/belt.tar"
}

// onTrial runs an updater whose trials last; the channel says when one has begun.
func onTrial(t *testing.T) (*bench, *reports, string, <-chan bool) {
	tried := make(chan bool, 100)
	b, r, from := working(t, func(b *bench) {
		b.settings.Trial = time.Hour
		b.health = func(string) Health {
			select {
			case tried <- true:
			default:
			}
			return Health{}
		}
	})
	return b, r, from, tried
}

func job(id, from, digest string) []byte {
	message, err := json.Marshal(payload.NextJob{Execution: &payload.JobExecution{
		ID: id, Status: payload.JobQueued, Document: payload.JobDocument{Operation: payload.UpdateModel, From: from, Digest: digest},
	}})
	if err != nil {
		panic(err)
	}
	return message
}

// TestJobsEnd: each with its status and its reason, and once.
func TestJobsEnd(t *testing.T) {
	for _, test := range []struct {
		name           string
		prepare        func(*bench)
		from           string // of the web server if empty
		digest         string
		status         payload.JobStatus
		reason         string
		installed, ran bool
	}{
		{name: "good", prepare: func(*bench) {}, status: payload.JobSucceeded, installed: true, ran: true},
		{
			name: "fails on trial", prepare: func(b *bench) { b.health = func(string) Health { return Health{Err: errors.New("no kernel")} } },
			status: payload.JobFailed, reason: "on trial: no kernel", ran: true,
		},
		{
			name: "file of this machine", prepare: func(*bench) {}, from: "/etc/passwd", status: payload.JobRejected,
			reason: "it is neither an https:// address nor HOST/NAME:TAG of a registry",
		},
		{name: "name of an installed model", prepare: func(*bench) {}, from: "belt", status: payload.JobRejected, reason: "it is neither"},
		{
			name: "other digest", prepare: func(*bench) {}, digest: "sha256:0", status: payload.JobRejected, reason: "that of the job sha256:0",
		},
		{name: "no keys", prepare: func(b *bench) { b.settings.Keys = nil }, status: payload.JobRejected, reason: "bundle.keys has no key"},
	} {
		t.Run(test.name, func(t *testing.T) {
			b, r, from := working(t, test.prepare)
			if test.from != "" {
				from = test.from
			}
			b.Receive(job("one", from, test.digest))
			last := r.last(t, "one")
			assert.Equal(t, test.status, last.Status)
			assert.Contains(t, last.Details.Reason, test.reason)
			assert.Equal(t, test.reason == "", last.Details.Reason == "")
			assert.Equal(t, test.installed, bundle.Installed(b.store, "belt") != nil)
			assert.Equal(t, test.ran, len(b.used) > 0)
			assert.Empty(t, b.store.Candidate("belt"))

			reported, used := len(r.of("one")), len(b.used)
			b.Receive(job("one", from, test.digest)) // as after a new connection
			assert.Len(t, r.of("one"), reported+1)
			assert.Equal(t, last, r.last(t, "one"))
			b.Receive(job("two", from, test.digest))
			again := r.last(t, "two")
			assert.Equal(t, test.status, again.Status)
			assert.Len(t, b.used, used, "nothing is tried again")
			require.Eventually(t, func() bool { return r.of("one")[len(r.of("one"))-1] == nil }, patience, time.Millisecond, "removed")
			m, err := readMemory(b.State)
			require.NoError(t, err)
			assert.Equal(t, "two", m.Jobs[Broker].ID)
		})
	}
}

// TestAWithdrawnJobGoesBack: on trial, and in favour of another job.
func TestAWithdrawnJobGoesBack(t *testing.T) {
	b, r, from, tried := onTrial(t)
	b.Receive(job("one", from, ""))
	<-tried
	b.Receive(job("two", "none", ""))
	last := r.last(t, "one")
	assert.Equal(t, payload.JobCanceled, last.Status)
	assert.Equal(t, "the job was withdrawn", last.Details.Reason)
	assert.Equal(t, payload.JobRejected, r.last(t, "two").Status)
	assert.Equal(t, "old", b.running)
	assert.Nil(t, bundle.Installed(b.store, "belt"))
	phases := map[string]bool{}
	for _, update := range r.of("one") {
		if update != nil {
			phases[update.Details.Phase] = true
		}
	}
	assert.Equal(t, map[string]bool{"": true, "downloading": true, "trial": true}, phases)
	b.Receive(nil) // there is nothing to withdraw
	b.Receive([]byte("{"))
	b.Receive([]byte(`{"execution": {"jobId": "three", "jobDocument": {"operation": "format"}}}`))
	assert.Equal(t, `operation "format" is neither update-model nor update-settings`, r.last(t, "three").Details.Reason)
}

// TestTemporaryFailures: a source that is away is asked again, what is wrong with a bundle is final.
func TestTemporaryFailures(t *testing.T) {
	_, err := http.Get("http://127.0.0.1:1/")
	assert.True(t, isTemporary(err))
	assert.False(t, isTemporary(errors.New("it is not signed")))
	for name, answer := range map[string]http.HandlerFunc{
		"busy": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) },
		"cut off before the answer": func(w http.ResponseWriter, _ *http.Request) {
			connection, _, err := http.NewResponseController(w).Hijack()
			assert.NoError(t, err)
			_ = connection.Close()
		},
		"cut off in the file": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte("half"))
		},
	} {
		server := httptest.NewServer(answer)
		b := newBench(t)
		b.Open(b.settings)
		b.settings.From = server.URL + "/belt.tar"
		_, _, err := b.receive(t.Context(), &b.settings, &Job{})
		assert.True(t, isTemporary(err), "%s: %v", name, err)
		server.Close()
	}
}

// TestSendersDoNotDisturbEachOther: a job of one is not withdrawn or replaced by the other, whose job comes after it.
func TestSendersDoNotDisturbEachOther(t *testing.T) {
	b, r, from, tried := onTrial(t)
	b.Offer(&Job{Sender: HawkBit, ID: "7", From: from})
	<-tried
	b.Receive(nil)
	b.Offer(&Job{Sender: HawkBit, ID: "7", From: from}) // as at each poll
	b.Receive(job("one", "none", ""))
	b.Offer(&Job{Sender: HawkBit, ID: "8", From: from}) // not now
	assert.False(t, b.Withdraw(HawkBit, "8"))
	assert.False(t, b.Withdraw(Broker, "7"))
	assert.True(t, b.Withdraw(HawkBit, "7"))
	assert.Equal(t, payload.JobCanceled, r.last(t, "7").Status)
	assert.Equal(t, payload.JobRejected, r.last(t, "one").Status)
	assert.Empty(t, r.of("8"))

	reported := len(r.of("7"))
	b.Offer(&Job{Sender: HawkBit, ID: "7", From: from}) // its end was lost
	assert.Len(t, r.of("7"), reported+1)
	m, err := readMemory(b.State)
	require.NoError(t, err)
	assert.Equal(t, "7", m.Jobs[HawkBit].ID)
}

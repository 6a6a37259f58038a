package update

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"aead.dev/minisign"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/bundle"
	"github.com/edge-infer/edge-infer/mqtt/payload"
)

// kept are settings in memory.
type kept struct {
	mu      sync.Mutex
	text    []byte
	applied []string
	unfit   error
	working func(text string) []string
}

func (k *kept) Read() ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.text, nil
}

func (k *kept) Write(text []byte) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.text = text
	return nil
}

func (k *kept) Check(text []byte) error {
	if string(text) == "wrong" {
		return errors.New("line 1: wrong")
	}
	return nil
}

func (k *kept) Apply(context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.unfit != nil && k.text != nil {
		return k.unfit
	}
	k.applied = append(k.applied, string(k.text))
	return nil
}

func (k *kept) Working() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.working != nil {
		return k.working(string(k.text))
	}
	return []string{"the broker"}
}

func (k *kept) in() string {
	text, _ := k.Read()
	return string(text)
}

// signer signs settings with a key that an updater knows.
type signer struct {
	t    *testing.T
	file string
}

func newSigner(t *testing.T, b *bench) signer {
	public, secret, err := minisign.GenerateKey(nil)
	require.NoError(t, err)
	text, err := secret.MarshalText()
	require.NoError(t, err)
	s := signer{t, filepath.Join(t.TempDir(), "key")}
	require.NoError(t, os.WriteFile(s.file, text, 0o600))
	b.settings.Keys = append(b.settings.Keys, public.String())
	return s
}

// job is a message with signed settings.
func (s signer) job(id string, settings bundle.Settings) []byte {
	text, signature, err := settings.Sign(s.file, nil)
	require.NoError(s.t, err)
	message, err := json.Marshal(payload.NextJob{Execution: &payload.JobExecution{
		ID: id, Document: payload.JobDocument{Operation: payload.UpdateSettings, Settings: text, Signature: signature},
	}})
	require.NoError(s.t, err)
	return message
}

// TestSettingsOfJobs: newer ones that are signed are in force; those that a part does not survive, or that cannot be applied, are not.
func TestSettingsOfJobs(t *testing.T) {
	k := &kept{}
	var s, stranger signer
	b, r, _ := working(t, func(b *bench) {
		stranger = newSigner(t, b)
		b.settings.Keys = nil
		s = newSigner(t, b)
		b.Settings = k
	})
	k.working = func(text string) []string {
		if text == "deaf" {
			return []string{"camera a"}
		}
		return []string{"the broker", "camera a"}
	}
	for _, test := range []struct {
		id     string
		signer signer
		bundle.Settings
		unfit  error
		status payload.JobStatus
		reason string
		inform string // text in force afterwards
	}{
		{id: "first", Settings: bundle.Settings{Version: 3, Settings: "good"}, status: payload.JobSucceeded, inform: "good"},
		{id: "again", Settings: bundle.Settings{Version: 3, Settings: "good"}, status: payload.JobSucceeded, inform: "good"},
		{
			id: "older", Settings: bundle.Settings{Version: 2, Settings: "old"}, status: payload.JobRejected,
			reason: "settings version 2 are not newer than version 3, which this device has", inform: "good",
		},
		{
			id: "same", Settings: bundle.Settings{Version: 3, Settings: "other"}, status: payload.JobRejected, reason: "are not newer",
			inform: "good",
		},
		{
			id: "expired", Settings: bundle.Settings{Version: 4, Settings: "late", Expires: time.Unix(1, 0)}, status: payload.JobRejected,
			reason: "settings version 4 expired on 1970-01-01", inform: "good",
		},
		{
			id: "form", Settings: bundle.Settings{Version: 4, Settings: "wrong"}, status: payload.JobRejected, reason: "line 1: wrong",
			inform: "good",
		},
		{
			id: "stranger", signer: stranger, Settings: bundle.Settings{Version: 4, Settings: "theirs"}, status: payload.JobRejected,
			reason: "settings: it is signed by key", inform: "good",
		},
		{
			id: "deaf", Settings: bundle.Settings{Version: 4, Settings: "deaf"}, status: payload.JobFailed,
			reason: "on trial the broker ceased to work", inform: "good",
		},
		{id: "next", Settings: bundle.Settings{Version: 4, Settings: "better"}, status: payload.JobSucceeded, inform: "better"},
	} {
		by := s
		if test.signer.file != "" {
			by = test.signer
		}
		b.Receive(by.job(test.id, test.Settings))
		last := r.last(t, test.id)
		assert.Equal(t, test.status, last.Status, test.id)
		assert.Contains(t, last.Details.Reason, test.reason, test.id)
		assert.Equal(t, test.inform, k.in(), test.id)
	}
	assert.Equal(t, []string{"good", "deaf", "good", "better"}, k.applied)

	looks := 0
	k.working = func(string) []string {
		if looks++; looks == 2 { // the camera connects again at the end of the trial
			return []string{"the broker"}
		}
		return []string{"the broker", "camera a"}
	}
	b.Receive(s.job("lapse", bundle.Settings{Version: 5, Settings: "fine"}))
	assert.Equal(t, payload.JobSucceeded, r.last(t, "lapse").Status)
	k.working = nil
	m, err := readMemory(b.State)
	require.NoError(t, err)
	assert.Equal(t, appliedSettings{Version: 5}, m.Settings)
}

// TestSettingsGoBack: when they are withdrawn, when they cannot be applied, and when the program ends while they are on trial.
func TestSettingsGoBack(t *testing.T) {
	k := &kept{text: []byte("before")}
	var s signer
	b, r, _ := working(t, func(b *bench) {
		s = newSigner(t, b)
		b.settings.Trial = time.Hour
		b.Settings = k
	})
	b.Receive(s.job("one", bundle.Settings{Version: 1, Settings: "tried"}))
	require.Eventually(t, func() bool { return k.in() == "tried" }, patience, time.Millisecond)
	b.Receive(nil)
	assert.Equal(t, payload.JobCanceled, r.last(t, "one").Status)
	assert.Equal(t, "before", k.in())

	m, err := readMemory(b.State)
	require.NoError(t, err)
	assert.Zero(t, m.Settings)
	m.Settings = appliedSettings{Version: 1, Trying: 2, Before: []byte("before")}
	require.NoError(t, m.save(b.State))
	again := &kept{text: []byte("tried")}
	next := &Updater{State: b.State, Fleet: b.cameras, Judge: b.cameras, Settings: again, Logger: b.Logger, Report: r.add}
	next.Open(b.settings)
	assert.Equal(t, "before", again.in(), "should this run fail, the next one has them")
	ctx, cancel := context.WithCancel(t.Context())
	next.endSettingsTrial(ctx)
	cancel()
	assert.Equal(t, []string{"before"}, again.applied)
	m, err = readMemory(b.State)
	require.NoError(t, err)
	assert.Equal(t, appliedSettings{Version: 1}, m.Settings)

	unfit := &kept{unfit: errors.New("they would need a restart of the program")}
	next.Settings = unfit
	err = next.tryText(t.Context(), 2, []byte("engine"), nil, time.Millisecond)
	require.EqualError(t, err, "they would need a restart of the program")
	assert.Empty(t, unfit.in())
}

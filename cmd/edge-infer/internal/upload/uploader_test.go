package upload

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rclone/gofakes3"
	"github.com/rclone/gofakes3/s3mem"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/record"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/store"
	"github.com/edge-infer/edge-infer/internal/backoff"
	"github.com/edge-infer/edge-infer/mqtt/mqtttest"
)

const (
	bucket    = "clips"
	accessKey = "hunt-access-key"
	secretKey = "hunt-secret-key"
)

// server is an S3 server that verifies signatures and checksums, behind a handler that may fail.
type server struct {
	*httptest.Server
	backend gofakes3.Backend
	fault   atomic.Pointer[http.HandlerFunc] // answers instead of the server; nil for none
}

func newServer(t *testing.T) *server {
	s := &server{backend: s3mem.New()}
	require.NoError(t, s.backend.CreateBucket(t.Context(), bucket))
	s3 := gofakes3.New(s.backend, gofakes3.WithV4Auth(map[string]string{accessKey: secretKey}), gofakes3.WithIntegrityCheck(true)).Server()
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fault := s.fault.Load()
		if fault != nil {
			(*fault)(w, r)
			return
		}
		s3.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// object returns the content of an object, nil if there is none.
func (s *server) object(t *testing.T, name string) []byte {
	found, err := s.backend.GetObject(t.Context(), bucket, name, nil)
	if gofakes3.HasErrorCode(err, gofakes3.ErrNoSuchKey) {
		return nil
	}
	require.NoError(t, err)
	defer found.Contents.Close()
	data, err := io.ReadAll(found.Contents)
	require.NoError(t, err)
	return data
}

// credentialsFile writes a file of credentials.
func credentialsFile(t *testing.T, secret string) string {
	path := filepath.Join(t.TempDir(), "credentials")
	require.NoError(t, os.WriteFile(path, []byte("[default]\naws_access_key_id = "+accessKey+"\naws_secret_access_key = "+secret+"\n"), 0o600))
	return path
}

// openStore opens an event store with clips in a directory.
func openStore(t *testing.T, directory string) *store.Store {
	t.Helper()
	s := &store.Store{
		Directory: filepath.Join(directory, "events"), ClipDirectory: filepath.Join(directory, "clips"),
		Uploads: store.UploadKinds{Clips: true, Snapshots: true}, Logger: slog.New(slog.DiscardHandler),
	}
	require.NoError(t, os.MkdirAll(s.ClipDirectory, 0o700))
	s.Open()
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	require.Empty(t, s.Stats().Error)
	return s
}

var began = time.Date(2026, 11, 25, 18, 0, 0, 0, time.UTC)

func content(id string) []byte { return bytes.Repeat([]byte(id), 1000) }

// addClip records a clip as the recorder does.
func addClip(t *testing.T, s *store.Store, id string) {
	t.Helper()
	clip := &record.Clip{ID: id, Camera: "yard/1", Events: []string{"event of " + id}, Path: id + ".mp4", Start: began, State: record.Open}
	require.NoError(t, s.OpenClip(t.Context(), clip))
	require.NoError(t, os.WriteFile(filepath.Join(s.ClipDirectory, clip.Path), content(id), 0o600))
	clip.State = record.Closed
	require.NoError(t, s.UpdateClip(t.Context(), clip))
}

// run runs an uploader until the test ends.
func run(t *testing.T, to *server, queue Queue, u *Uploader) *Uploader {
	t.Helper()
	u.Endpoint, u.Bucket, u.Queue, u.poll = to.URL, bucket, queue, time.Millisecond
	u.retry = backoff.Exponential{Min: time.Millisecond, Max: 5 * time.Millisecond}
	if u.CredentialsFile == "" {
		u.CredentialsFile = credentialsFile(t, secretKey)
	}
	if u.Logger == nil {
		u.Logger = slog.New(slog.DiscardHandler)
	}
	require.NoError(t, u.Open())
	var running sync.WaitGroup
	ctx, stop := context.WithCancel(context.Background())
	running.Go(func() { assert.NoError(t, u.Run(ctx)) })
	t.Cleanup(func() {
		stop()
		running.Wait()
	})
	return u
}

// waiting returns the number of files that wait.
func waiting(t *testing.T, s *store.Store) int {
	n, err := s.WaitingUploads(t.Context())
	require.NoError(t, err)
	return n
}

func eventually(t *testing.T, condition func() bool, text string) {
	t.Helper()
	require.Eventually(t, condition, mqtttest.Patience, time.Millisecond, text)
}

func TestClipsAndSnapshots(t *testing.T) {
	to, s := newServer(t), openStore(t, t.TempDir())
	u := run(t, to, s, &Uploader{Prefix: "gate/"})
	require.NoError(t, u.Check(t.Context()))
	addClip(t, s, "20261125T180000-a")
	e := store.Event{ID: "1795629600.5-1", Camera: "yard/1", Label: "person", Start: began, Last: began}
	s.Add(&e)
	s.AddSnapshot(&store.Snapshot{Camera: e.Camera, ID: e.ID, Frame: []byte("first"), Crop: []byte("crop"), Width: 1, Height: 1})
	eventually(t, func() bool { return s.Stats().Queued == 0 }, "stored")
	ended := e
	ended.Ended = true
	s.Add(&ended)
	const clip, frame = "gate/yard%2F1/2026-11-25/20261125T180000-a.mp4", "gate/yard%2F1/2026-11-25/1795629600.5-1.jpg"
	eventually(t, func() bool { return to.object(t, frame) != nil && to.object(t, clip) != nil }, "both are uploaded")
	assert.Equal(t, content("20261125T180000-a"), to.object(t, clip))
	assert.Equal(t, "first", string(to.object(t, frame)))
	s.AddSnapshot(&store.Snapshot{Camera: e.Camera, ID: e.ID, Frame: []byte("best"), Crop: []byte("crop"), Width: 1, Height: 1})
	eventually(t, func() bool { return string(to.object(t, frame)) == "best" }, "a better image that comes late replaces it")
	eventually(t, func() bool { return waiting(t, s) == 0 && u.Status().Uploaded == 3 && u.Status().Waiting == 0 }, "nothing waits")
	status := u.Status()
	assert.Zero(t, status.Failures)
}

// What fails is tried again and keeps nothing else, whatever the server does.
func TestFaultyServers(t *testing.T) {
	var hang chan struct{} // of the subtest
	for name, fault := range map[string]http.HandlerFunc{
		"hangs":     func(http.ResponseWriter, *http.Request) { <-hang },
		"closes":    func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"error":     func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
		"not S3":    func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") },
		"redirects": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) },
	} {
		t.Run(name, func(t *testing.T) {
			to, s := newServer(t), openStore(t, t.TempDir())
			hang = make(chan struct{})
			t.Cleanup(func() { close(hang) })
			to.fault.Store(&fault)
			addClip(t, s, "a")
			addClip(t, s, "b")
			u := run(t, to, s, &Uploader{slack: 50 * time.Millisecond, Region: ""})
			eventually(t, func() bool { return u.Status().Failures > 2 }, "fault reported")
			assert.NotEmpty(t, u.Status().Error)
			assert.NotContains(t, u.Status().Error, "Signature")
			assert.Equal(t, 2, waiting(t, s))
			to.fault.Store(nil)
			eventually(t, func() bool { return waiting(t, s) == 0 }, "uploaded")
			for _, id := range []string{"a", "b"} {
				assert.Equal(t, content(id), to.object(t, "yard%2F1/2026-11-25/"+id+".mp4"))
			}
			assert.Empty(t, u.Status().Error)
		})
	}
}

// One object that the server refuses does not keep the others.
func TestOneIsRefused(t *testing.T) {
	to, s := newServer(t), openStore(t, t.TempDir())
	addClip(t, s, "a")
	addClip(t, s, "b")
	addClip(t, s, "c")
	s3 := to.Config.Handler
	to.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/a.mp4") {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		s3.ServeHTTP(w, r)
	})
	u := run(t, to, s, &Uploader{})
	eventually(t, func() bool { return waiting(t, s) == 1 && u.Status().Failures > 1 }, "the others are uploaded")
	assert.Nil(t, to.object(t, "yard%2F1/2026-11-25/a.mp4"))
}

func TestWrongCredentials(t *testing.T) {
	to, s := newServer(t), openStore(t, t.TempDir())
	addClip(t, s, "a")
	log := &mqtttest.Journal{}
	u := run(t, to, s, &Uploader{CredentialsFile: credentialsFile(t, "hunt-another"), Logger: log.Logger()})
	eventually(t, func() bool { return u.Status().Failures > 2 }, "refused")
	assert.Contains(t, u.Status().Error, "the server answers 403: ")
	assert.ErrorContains(t, u.Check(t.Context()), "403")
	assert.Nil(t, to.object(t, "yard%2F1/2026-11-25/a.mp4"))
	assert.NotContains(t, log.String()+u.Status().Error, "hunt-another")
	other := &Uploader{Endpoint: to.URL, Bucket: "other", CredentialsFile: credentialsFile(t, secretKey)}
	require.NoError(t, other.Open())
	assert.ErrorContains(t, other.Check(t.Context()), `no bucket "other"`)
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	piped := &Uploader{Endpoint: to.URL, Bucket: bucket, CredentialsFile: pipe}
	require.NoError(t, piped.Open())
	assert.ErrorContains(t, piped.Check(t.Context()), pipe+": a pipe or a device, not a regular file")
}

// A file that is gone is counted, and holds nothing up.
func TestAFileIsGone(t *testing.T) {
	to, s := newServer(t), openStore(t, t.TempDir())
	addClip(t, s, "a")
	addClip(t, s, "b")
	require.NoError(t, os.Remove(filepath.Join(s.ClipDirectory, "a.mp4")))
	require.NoError(t, s.RemoveClip(t.Context(), "b"))
	u := run(t, to, s, &Uploader{})
	eventually(t, func() bool { return waiting(t, s) == 0 }, "done")
	assert.EqualValues(t, 2, u.Status().Lost)
	assert.Empty(t, u.Status().Error)
}

// TestCrashChild is the process that TestKillsForgetNothing kills. It records and uploads clips, and prints the ones that are complete.
func TestCrashChild(t *testing.T) {
	directory := os.Getenv("EDGE_INFER_CRASH_UPLOAD")
	if directory == "" {
		t.Skip("runs only as a child of TestKillsForgetNothing")
	}
	s := openStore(t, directory)
	run(t, &server{Server: &httptest.Server{URL: os.Getenv("EDGE_INFER_CRASH_SERVER")}}, s, &Uploader{})
	for n := 0; ; n++ {
		id := fmt.Sprintf("%s-%d", os.Getenv("EDGE_INFER_CRASH_ROUND"), n)
		addClip(t, s, id)
		fmt.Println("complete", id)
	}
}

// TestKillsForgetNothing kills a process that uploads, then has another one do the rest: every complete clip must be on the server.
func TestKillsForgetNothing(t *testing.T) {
	to, directory := newServer(t), t.TempDir()
	var complete []string
	for round := range 5 {
		child := exec.Command(os.Args[0], "-test.run=^TestCrashChild$")
		child.Env = append(os.Environ(), "EDGE_INFER_CRASH_UPLOAD="+directory, "EDGE_INFER_CRASH_SERVER="+to.URL,
			fmt.Sprintf("EDGE_INFER_CRASH_ROUND=%d", round))
		output, err := child.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, child.Start())
		lines := bufio.NewScanner(output)
		count := 0
		for lines.Scan() {
			id, found := strings.CutPrefix(lines.Text(), "complete ")
			require.True(t, found, lines.Text())
			complete = append(complete, id)
			if count++; count == 1 {
				time.AfterFunc(time.Duration(rand.IntN(100))*time.Millisecond, func() { child.Process.Kill() })
			}
		}
		child.Wait()
		require.Positive(t, count, "round %d", round)
	}
	s := openStore(t, directory)
	rest := waiting(t, s)
	run(t, to, s, &Uploader{})
	eventually(t, func() bool { return waiting(t, s) == 0 }, "the rest is uploaded")
	for _, id := range complete {
		require.Equal(t, content(id), to.object(t, "yard%2F1/2026-11-25/"+id+".mp4"), id)
	}
	t.Logf("%d clips, %d of them after the last kill", len(complete), rest)
}

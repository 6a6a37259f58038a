package store

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/record"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// logged collects log lines.
type logged struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logged) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// opened returns an open store of a directory.
func opened(t *testing.T, directory string, log io.Writer) *Store {
	t.Helper()
	s := &Store{Directory: directory, Logger: slog.New(slog.NewTextHandler(log, nil)), retry: time.Millisecond}
	s.Open()
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// flush waits until everything handed over is stored.
func flush(t *testing.T, s *Store) {
	t.Helper()
	require.Eventually(t, func() bool { return s.writingImages.Load() == 0 && s.queue.len() == 0 }, time.Minute, time.Millisecond)
	require.NoError(t, s.change(context.Background(), func() error { return nil }))
}

// began is the start of the first test event.
var began = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

// event returns test event number i: its camera, label and zone follow from the number.
func event(i int) *Event {
	start := began.Add(time.Duration(i) * time.Second)
	e := &Event{
		ID: fmt.Sprintf("%d.000000-%d", start.Unix(), i), Camera: []string{"yard", "gate"}[i%2], Label: []string{"person", "car", "dog"}[i%3],
		Start: start, Last: start.Add(time.Second), Ended: true,
	}
	e.Score = 0.5
	e.Box = [4]float64{1, 2, 30, 40}
	e.Width, e.Height = 640, 480
	if i%5 == 0 {
		e.Zones = []string{"drive"}
		e.Attributes = map[string]Attribute{"colour": {"red", 0.9}}
	}
	return e
}

func ids(events []Event) (all []string) {
	for i := range events {
		all = append(all, events[i].ID)
	}
	return all
}

func list(t *testing.T, s *Store, f Filter) []Event {
	t.Helper()
	events, _, err := s.Events(context.Background(), f)
	require.NoError(t, err)
	return events
}

// TestEventsSurviveARestart: one row per object, with what its last event said, all crossings, and nothing lost by closing.
func TestEventsSurviveARestart(t *testing.T) {
	directory := filepath.Join(t.TempDir(), "a b?%", "events")
	s := opened(t, directory, io.Discard)
	first := event(0)
	first.Ended = false
	s.Add(first)
	crossing := event(0)
	crossing.Ended = false
	crossing.Lines = []Crossing{{"kerb", "in"}}
	crossing.Attributes = map[string]Attribute{"colour": {"blue", 0.8}}
	s.Add(crossing)
	last := event(0)
	last.Lines = []Crossing{{"kerb", "out"}}
	last.Attributes = map[string]Attribute{"colour": {"blue", 0.8}}
	last.Path = [][2]int{{1, 2}, {3, 4}}
	s.Add(last)
	require.NoError(t, s.Close())
	require.Equal(t, uint64(3), s.Stats().Stored)

	s = opened(t, directory, io.Discard)
	want := *last
	want.Lines = []Crossing{{"kerb", "in"}, {"kerb", "out"}}
	require.Equal(t, []Event{want}, list(t, s, Filter{Limit: 10}))
	found, err := s.Event(context.Background(), last.ID)
	require.NoError(t, err)
	require.Equal(t, &want, found)
	_, err = s.Event(context.Background(), "1.000000-1")
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.Empty(t, list(t, s, Filter{Attribute: "colour=red", Limit: 10}), "an attribute that has changed")
	require.Len(t, list(t, s, Filter{Attribute: "colour=blue", Limit: 10}), 1)
}

func TestFiltersAndPages(t *testing.T) {
	s := opened(t, t.TempDir(), io.Discard)
	for i := range 60 {
		s.Add(event(i))
	}
	flush(t, s)
	for _, test := range []struct {
		filter Filter
		fits   func(e *Event, i int) bool
	}{
		{Filter{}, func(*Event, int) bool { return true }},
		{Filter{Camera: "gate"}, func(e *Event, _ int) bool { return e.Camera == "gate" }},
		{Filter{Label: "dog"}, func(e *Event, _ int) bool { return e.Label == "dog" }},
		{Filter{Camera: "yard", Label: "car"}, func(e *Event, _ int) bool { return e.Camera == "yard" && e.Label == "car" }},
		{Filter{Zone: "drive"}, func(_ *Event, i int) bool { return i%5 == 0 }},
		{Filter{Attribute: "colour"}, func(_ *Event, i int) bool { return i%5 == 0 }},
		{Filter{Attribute: "colour=red", Zone: "drive", Camera: "gate"}, func(e *Event, i int) bool { return i%5 == 0 && e.Camera == "gate" }},
		{Filter{Zone: "nowhere"}, func(*Event, int) bool { return false }},
		{
			Filter{After: began.Add(10 * time.Second), Before: began.Add(20 * time.Second)},
			func(_ *Event, i int) bool { return i >= 10 && i < 20 },
		},
		{Filter{Zone: "drive", After: began.Add(30 * time.Second)}, func(_ *Event, i int) bool { return i%5 == 0 && i >= 30 }},
	} {
		var want []string
		for i := 59; i >= 0; i-- {
			if e := event(i); test.fits(e, i) {
				want = append(want, e.ID)
			}
		}
		var got []string
		f := test.filter
		f.Limit = 7
		for {
			page, next, err := s.Events(context.Background(), f)
			require.NoError(t, err)
			require.LessOrEqual(t, len(page), 7)
			got = append(got, ids(page)...)
			if next == "" {
				break
			}
			f.Cursor = next
		}
		require.Equal(t, want, got, "%+v", test.filter)
	}
	for _, cursor := range []string{"x", "MTIz", "MTIzLg", "!"} {
		_, _, err := s.Events(context.Background(), Filter{Cursor: cursor, Limit: 1})
		require.ErrorIs(t, err, ErrCursor)
	}
}

func TestEventsOfTwoCamerasWithOneID(t *testing.T) {
	s := opened(t, t.TempDir(), io.Discard)
	one, other := event(0), event(0)
	other.Camera = "gate"
	s.Add(one)
	s.Add(other)
	s.AddSnapshot(&Snapshot{Camera: "yard", ID: one.ID, Frame: []byte("frame"), Crop: []byte("crop"), Width: 64, Height: 48})
	flush(t, s)
	all := list(t, s, Filter{Limit: 10})
	require.Len(t, all, 2)
	require.Zero(t, all[0].Frame, "the image is of the other camera")
	require.EqualValues(t, 5, all[1].Frame)
}

func snapshot(e *Event) *Snapshot {
	return &Snapshot{Camera: e.Camera, ID: e.ID, Frame: []byte("frame of " + e.ID), Crop: []byte("crop of " + e.ID), Width: 64, Height: 48}
}

// TestImages: they replace earlier ones, and the limit removes the oldest with their files.
func TestImages(t *testing.T) {
	directory := t.TempDir()
	s := opened(t, directory, io.Discard)
	first := event(0)
	s.Add(first)
	s.AddSnapshot(&Snapshot{Camera: first.Camera, ID: first.ID, Frame: []byte("earlier"), Crop: []byte("x"), Width: 1, Height: 1})
	flush(t, s)
	for i := range 6 {
		s.Add(event(i))
		s.AddSnapshot(snapshot(event(i)))
		flush(t, s)
	}
	s.AddSnapshot(snapshot(event(99))) // its event was dropped
	flush(t, s)
	require.EqualValues(t, 1, s.Stats().Dropped)
	found, err := s.Event(context.Background(), first.ID)
	require.NoError(t, err)
	require.Equal(t, [2]int{64, 48}, [2]int{found.FrameWidth, found.FrameHeight})
	file, err := s.FrameFile(found)
	require.NoError(t, err)
	data, err := io.ReadAll(file)
	require.NoError(t, errorsOf(err, file.Close()))
	require.Equal(t, "frame of "+first.ID, string(data))

	sum := func() (bytes int64) {
		for _, e := range list(t, s, Filter{Limit: 100}) {
			bytes += e.Frame + e.Crop
		}
		return bytes
	}
	require.NoError(t, s.change(context.Background(), func() error {
		require.Equal(t, sum(), s.writer.images)
		return nil
	}))
	prune(t, s, func() { require.NoError(t, s.writer.removeImages(3*(found.Frame+found.Crop))) })
	var kept []string
	for _, e := range list(t, s, Filter{Limit: 100}) {
		if e.Frame > 0 {
			kept = append(kept, e.ID)
		}
	}
	require.Equal(t, []string{event(5).ID, event(4).ID, event(3).ID}, kept)
	files, err := filepath.Glob(filepath.Join(directory, imageDirectory, "*", "*"))
	require.NoError(t, err)
	require.Len(t, files, 6)
}

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

func errorsOf(all ...error) error {
	for _, err := range all {
		if err != nil {
			return err
		}
	}
	return nil
}

// prune closes the store, runs work in place of the writer, and opens it again.
func prune(t *testing.T, s *Store, work func()) {
	t.Helper()
	require.NoError(t, s.Close())
	require.NoError(t, s.writer.open())
	work()
	s.writer.release()
	s.Open()
}

// TestRetention: events go by age, with their tags and images, a limited number at once; and by size. Those of pinned clips stay.
func TestRetention(t *testing.T) {
	s := opened(t, t.TempDir(), io.Discard)
	for i := range 40 {
		s.Add(event(i))
	}
	s.AddSnapshot(snapshot(event(3)))
	flush(t, s)
	ctx := context.Background()
	pinned := &record.Clip{ID: "p", Camera: event(5).Camera, Events: []string{event(5).ID}, Path: "p.mp4", Start: began, State: record.Closed}
	require.NoError(t, s.OpenClip(ctx, pinned))
	require.NoError(t, s.SetPinned(ctx, "p", true))
	prune(t, s, func() { require.NoError(t, s.writer.prune(began.Add(20*time.Second).AddDate(0, 0, s.Days), true)) })
	left := list(t, s, Filter{Limit: 100})
	require.Len(t, left, 21)
	require.Equal(t, event(5).ID, left[20].ID)
	require.Equal(t, []string{event(35).ID, event(30).ID, event(25).ID, event(20).ID, event(5).ID}, ids(list(t, s, Filter{
		Zone:  "drive",
		Limit: 100,
	})))
	var tags int
	require.NoError(t, s.readers.QueryRow("SELECT count(*) FROM tags").Scan(&tags))
	require.Equal(t, 2*5*3, tags)
	require.NoDirExists(t, filepath.Join(s.Directory, imageDirectory, "2026-11-25"), "its last image is gone")

	s.MaxBytes = 1
	prune(t, s, func() { require.NoError(t, s.writer.prune(began, true)) })
	require.Equal(t, []string{event(5).ID}, ids(list(t, s, Filter{Limit: 100})))
}

// TestRepair: whatever a crash leaves behind is put right by the next start.
func TestRepair(t *testing.T) {
	directory := t.TempDir()
	s := opened(t, directory, io.Discard)
	for i := range 4 {
		e := event(i)
		e.Ended = i != 3
		s.Add(e)
		s.AddSnapshot(snapshot(e))
		flush(t, s)
	}
	require.NoError(t, s.Close())
	image := func(i int, kind string) string { return s.imagePath(imageName(event(i).Camera, event(i).ID, kind)) }
	require.NoError(t, os.Remove(image(0, frameImage)))
	require.NoError(t, os.Truncate(image(1, cropImage), 0))
	orphan := s.imagePath(imageName("gone", event(1).ID, frameImage))
	foreign := filepath.Join(filepath.Dir(orphan), "holiday.jpg")
	for _, path := range []string{orphan, image(2, frameImage) + ".tmp", foreign} {
		require.NoError(t, os.WriteFile(path, []byte("x"), 0o600))
	}

	log := &logged{}
	s = opened(t, directory, log)
	all := list(t, s, Filter{Limit: 10})
	require.Len(t, all, 4)
	for i, e := range all {
		require.True(t, e.Ended, "%d", 3-i)
		require.Equal(t, i < 2, e.Frame > 0, "%d", 3-i)
	}
	require.NoFileExists(t, orphan)
	require.NoFileExists(t, image(0, cropImage), "the rest of a pair")
	require.NoFileExists(t, image(2, frameImage)+".tmp")
	require.FileExists(t, image(2, frameImage))
	require.FileExists(t, foreign, "what the store has not written stays")
	require.Contains(t, log.String(), "rows_without_file=2 files_without_row=4")
	require.Contains(t, log.String(), "events=1")
}

// TestADamagedDatabaseIsPutAside, at the start and while it runs: a new one is begun, and what comes next is stored.
func TestADamagedDatabaseIsPutAside(t *testing.T) {
	directory := t.TempDir()
	s := opened(t, directory, io.Discard)
	for i := range 2000 {
		s.Add(event(i))
	}
	flush(t, s)
	require.NoError(t, s.Close())
	path := filepath.Join(directory, databaseName)
	require.NoError(t, os.WriteFile(path, []byte(strings.Repeat("no database ", 1000)), 0o600))
	log := &logged{}
	s = opened(t, directory, log)
	require.Empty(t, list(t, s, Filter{Limit: 10}))
	require.Contains(t, log.String(), "the database is damaged: it is put aside and a new one begun")
	for i := range 2000 {
		s.Add(event(i))
	}
	flush(t, s)
	require.NoError(t, s.Close()) // the log is merged into the file
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	for at := 8192; at < len(data); at++ { // all but the schema
		data[at] = 0xff
	}
	require.NoError(t, os.WriteFile(path, data, 0o600))
	log = &logged{}
	s = opened(t, directory, log)
	s.Add(event(5000))
	flush(t, s)
	require.Contains(t, log.String(), "put aside")
	require.Equal(t, []string{event(5000).ID}, ids(list(t, s, Filter{Limit: 10})))
	aside, err := filepath.Glob(path + ".damaged-*")
	require.NoError(t, err)
	require.NotEmpty(t, aside)
}

// TestAnUnusableDirectory costs stored events and nothing else, says why, and is used once it can be.
func TestAnUnusableDirectory(t *testing.T) {
	directory := filepath.Join(t.TempDir(), "events")
	require.NoError(t, os.WriteFile(directory, nil, 0o600))
	log := &logged{}
	s := opened(t, directory, log)
	s.Add(event(0))
	s.Settle()
	require.Eventually(t, func() bool { return s.Stats().Dropped == 1 }, time.Minute, time.Millisecond)
	require.Contains(t, s.Stats().Error, "not a directory")
	require.Contains(t, log.String(), "events are not stored")
	_, _, err := s.Events(context.Background(), Filter{Limit: 1})
	require.ErrorContains(t, err, "not a directory")
	require.Error(t, s.OpenClip(context.Background(), &record.Clip{ID: "a"}))
	require.NoError(t, os.Remove(directory))
	require.Eventually(t, func() bool { return s.Stats().Error == "" }, time.Minute, 10*time.Millisecond)
	s.Add(event(1))
	flush(t, s)
	require.Equal(t, []string{event(1).ID}, ids(list(t, s, Filter{Limit: 1})))
}

func TestTwoStoresOfOneDirectory(t *testing.T) {
	directory := t.TempDir()
	opened(t, directory, io.Discard)
	second := opened(t, directory, io.Discard)
	require.Contains(t, second.Stats().Error, "another process stores its events in this directory")
}

func TestANewerDatabaseIsLeftAlone(t *testing.T) {
	directory := t.TempDir()
	s := opened(t, directory, io.Discard)
	require.NoError(t, s.change(context.Background(), func() error { return s.writer.db.script("PRAGMA user_version = 99") }))
	require.NoError(t, s.Close())
	s = opened(t, directory, io.Discard)
	require.Contains(t, s.Stats().Error, "written by a newer version")
	aside, err := filepath.Glob(filepath.Join(directory, "*damaged*"))
	require.NoError(t, err)
	require.Empty(t, aside)
}

func TestNetworkFileSystemsAreRefused(t *testing.T) {
	for magic, name := range map[int64]string{0x6969: "NFS", 0xff534d42: "CIFS", -0x1acb2be: "SMB", 0xfe534d42: "SMB"} {
		require.EqualError(t, refuseNetwork("/mnt/x", magic), "/mnt/x is on a network file system ("+name+
			"), where a database loses data when the connection is lost: set events.directory to a directory on a disk of this machine")
	}
	require.NoError(t, refuseNetwork("/mnt/x", 0xef53))
	require.ErrorContains(t, checkFileSystem("/nonexistent"), "statfs /nonexistent")
}

// TestAHangingDisk: nobody waits for longer than the limit, later ones not at all, what finds the queue full is counted, and everything
// that was taken is stored afterwards.
func TestAHangingDisk(t *testing.T) {
	s := opened(t, t.TempDir(), io.Discard)
	hang := make(chan struct{})
	started := make(chan struct{})
	require.True(t, s.queue.add(job{apply: func() error {
		close(started)
		<-hang
		return nil
	}}))
	<-started
	for i := range maxQueued + 10 {
		s.Add(event(i))
	}
	require.EqualValues(t, 11, s.Stats().Dropped)
	s.Settle()
	require.True(t, s.queue.late.Load())
	s.Settle()
	for range imageQueue + 20 {
		s.AddSnapshot(snapshot(event(0)))
	}
	require.Error(t, s.OpenClip(context.Background(), &record.Clip{ID: "a"}))
	close(hang)
	flush(t, s)
	require.EqualValues(t, maxQueued-1, s.Stats().Stored)
	require.False(t, s.queue.late.Load())
	s.Add(event(6000))
	s.Settle()
	require.Equal(t, event(6000).ID, list(t, s, Filter{Limit: 1})[0].ID, "stored before Settle returns")
}

func TestClips(t *testing.T) {
	s := opened(t, t.TempDir(), io.Discard)
	s.ClipDirectory = t.TempDir()
	ctx := context.Background()
	e := event(0)
	s.Add(e)
	clip := record.Clip{
		ID: "c1", Camera: e.Camera, Events: []string{e.ID}, Path: "yard/c1.mp4", Start: began, Requested: began.Add(time.Second),
		Codec: "avc1.64001f",
		State: record.Open,
	}
	require.False(t, s.HasClip(e.Camera, e.ID))
	require.NoError(t, s.OpenClip(ctx, &clip))
	require.True(t, s.HasClip(e.Camera, e.ID))
	require.NoError(t, s.SetPinned(ctx, "c1", true))
	clip.Events = append(clip.Events, "other")
	clip.State, clip.Duration, clip.Bytes = record.Closed, 3*time.Second, 1234
	require.NoError(t, s.UpdateClip(ctx, &clip))
	require.NoError(t, s.UpdateClip(ctx, &record.Clip{ID: "unknown", Events: []string{e.ID}}))
	var all []record.Clip
	clips := func() []record.Clip {
		all = nil
		require.NoError(t, s.Clips(ctx, func(c *record.Clip) bool {
			all = append(all, *c)
			return true
		}))
		return all
	}
	pinned := clip
	pinned.Pinned = true
	require.Equal(t, []record.Clip{pinned}, clips(), "pinned stays")
	require.ErrorIs(t, s.RemoveClip(ctx, "c1"), record.ErrPinned)
	found, err := s.Event(ctx, e.ID)
	require.NoError(t, err)
	require.Equal(t, "c1", found.Clip)
	_, err = s.ClipFile(ctx, "c1")
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoError(t, os.MkdirAll(filepath.Join(s.ClipDirectory, "yard"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(s.ClipDirectory, "yard", "c1.mp4"), []byte("video"), 0o600))
	file, err := s.ClipFile(ctx, "c1")
	require.NoError(t, err)
	require.NoError(t, file.Close())

	outside := clip
	outside.ID, outside.Path = "c2", "../c2.mp4"
	require.NoError(t, s.AdoptClip(ctx, &outside))
	_, err = s.ClipFile(ctx, "c2")
	require.Error(t, err, "a path out of the directory")
	lost := clip
	lost.State = record.Lost
	require.NoError(t, s.UpdateClip(ctx, &lost))
	require.NoError(t, s.RemoveClip(ctx, "c2"))
	found, err = s.Event(ctx, e.ID)
	require.NoError(t, err)
	require.Empty(t, found.Clip, "a lost clip is none")
	require.NoError(t, s.SetPinned(ctx, "c1", false))
	require.Error(t, s.SetPinned(ctx, "unknown", true))
	require.NoError(t, s.RemoveClip(ctx, "c1"))
	require.NoError(t, s.RemoveClip(ctx, "c1"))
	require.Empty(t, clips())

	// More than a page, of which some are removed on the way.
	for i := range 2*clipPage + 1 {
		c := clip
		c.ID, c.Start = fmt.Sprintf("n%d", i), began.Add(time.Duration(i/10)*time.Second)
		s.queue.add(job{apply: s.writer.insertClip(&c)})
	}
	flush(t, s)
	seen := 0
	require.NoError(t, s.Clips(ctx, func(c *record.Clip) bool {
		seen++
		return s.RemoveClip(ctx, c.ID) == nil
	}))
	require.Equal(t, 2*clipPage+1, seen)
	require.Empty(t, clips())
}

func TestRecentClipsAreBounded(t *testing.T) {
	var r recentClips
	for i := range 2 * recentLimit {
		r.add(fmt.Sprint(i))
		r.add(fmt.Sprint(i))
	}
	require.Len(t, r.known, recentLimit)
	require.Len(t, r.order, recentLimit)
}

// TestAWrongClockRemovesNothing: for an hour after the time of day was set, nothing is too old; the size is limited all the same.
func TestAWrongClockRemovesNothing(t *testing.T) {
	var c clock
	minute := func(n int) time.Duration { return time.Duration(n) * time.Minute }
	at := func(n int) time.Time { return began.Add(minute(n)) }
	require.True(t, c.trusted(at(0), minute(0)))
	require.True(t, c.trusted(at(1).Add(time.Second), minute(1)), "a correction")
	require.False(t, c.trusted(at(2).AddDate(1, 0, 0), minute(2)))
	require.False(t, c.trusted(at(3).AddDate(1, 0, 0), minute(3)))
	require.False(t, c.trusted(at(4), minute(4)), "set back")
	require.False(t, c.trusted(at(63), minute(63)))
	require.True(t, c.trusted(at(64), minute(64)))

	s := opened(t, t.TempDir(), io.Discard)
	s.Add(event(0))
	flush(t, s)
	prune(t, s, func() { require.NoError(t, s.writer.prune(began.AddDate(1, 0, 0), false)) })
	_, err := s.Event(t.Context(), event(0).ID)
	require.NoError(t, err)
	prune(t, s, func() { require.NoError(t, s.writer.prune(began.AddDate(1, 0, 0), true)) })
	_, err = s.Event(t.Context(), event(0).ID)
	require.Error(t, err)
}

// TestHasClipFollowsTheClips: a message must not name a clip that was lost or removed, while another one is left.
func TestHasClipFollowsTheClips(t *testing.T) {
	s := opened(t, t.TempDir(), io.Discard)
	e := event(0)
	s.Add(e)
	clip := func(id string, state record.State) *record.Clip {
		return &record.Clip{ID: id, Camera: e.Camera, Events: []string{e.ID}, Path: id, Start: began, State: state}
	}
	has := func() bool { return s.HasClip(e.Camera, e.ID) }
	require.NoError(t, s.OpenClip(t.Context(), clip("a", record.Open)))
	require.NoError(t, s.OpenClip(t.Context(), clip("b", record.Open)))
	require.True(t, has())
	require.NoError(t, s.UpdateClip(t.Context(), clip("a", record.Lost)))
	require.True(t, has())
	require.NoError(t, s.RemoveClip(t.Context(), "b"))
	require.False(t, has())
	require.NoError(t, s.OpenClip(t.Context(), clip("c", record.Open)))
	require.True(t, has())
	require.NoError(t, s.UpdateClip(t.Context(), clip("c", record.Lost)))
	require.False(t, has())
	for i := range 3 * recentLimit {
		s.recent.add(fmt.Sprint(i % (recentLimit + 1)))
		s.recent.remove(fmt.Sprint(i / 2))
	}
	require.Len(t, s.recent.known, len(s.recent.order))
}

// TestRecordings: files of continuous recordings are found by camera and by the time that they show, page by page, and are no clips of
// events. Spans bridge the seconds between two files, and show gaps.
func TestRecordings(t *testing.T) {
	s := opened(t, t.TempDir(), io.Discard)
	s.Uploads = UploadKinds{Clips: true}
	ctx := context.Background()
	add := func(camera string, minute int, length time.Duration, state record.State, events ...string) {
		clip := &record.Clip{
			ID: fmt.Sprint(camera, minute), Camera: camera, Events: append([]string{}, events...), Path: "x.mp4", Codec: "mjpeg",
			Start: began.Add(time.Duration(minute) * time.Minute), State: record.Open,
		}
		require.NoError(t, s.OpenClip(ctx, clip))
		if state != record.Open {
			clip.State, clip.Duration, clip.Bytes = state, length, 7
			require.NoError(t, s.UpdateClip(ctx, clip))
		}
	}
	for minute := range 10 {
		if minute != 4 {
			add("gate", minute, 59*time.Second, record.Closed)
		}
	}
	add("gate", 10, 0, record.Open)
	add("yard", 3, 30*time.Second, record.Closed)
	add("yard", 5, 30*time.Second, record.Lost)
	add("yard", 3600, 30*time.Second, record.Closed, "1.000000-1")
	at := func(minute float64) time.Time { return began.Add(time.Duration(minute * float64(time.Minute))) }
	find := func(f Filter) (all []string) {
		for {
			files, next, err := s.Recordings(ctx, f)
			require.NoError(t, err)
			for i := range files {
				all = append(all, files[i].ID)
			}
			if next == "" {
				return all
			}
			require.Len(t, files, f.Limit)
			f.Cursor = next
		}
	}
	require.Equal(t, []string{"gate10", "gate9", "gate8", "gate7", "gate6", "gate5", "yard3", "gate3", "gate2", "gate1", "gate0"}, find(Filter{
		Limit: 3,
	}))
	require.Equal(t, []string{"gate3", "gate2"}, find(Filter{Camera: "gate", After: at(2.5), Before: at(3.1), Limit: 1}))
	require.Equal(t, []string{"gate10"}, find(Filter{After: at(30), Limit: 5}), "it may still be recorded")
	require.Empty(t, find(Filter{Camera: "none", Limit: 5}))
	_, _, err := s.Recordings(ctx, Filter{Cursor: "x"})
	require.ErrorIs(t, err, ErrCursor)
	files, _, err := s.Recordings(ctx, Filter{Limit: 2})
	require.NoError(t, err)
	require.Equal(t, []Recording{
		{ID: "gate10", Camera: "gate", Start: at(10), Codec: "mjpeg"},
		{ID: "gate9", Camera: "gate", Start: at(9), End: at(9).Add(59 * time.Second), Codec: "mjpeg", Bytes: 7},
	}, files)

	spans, err := s.Spans(ctx, Filter{})
	require.NoError(t, err)
	require.Equal(t, []Span{
		{"gate", at(5), time.Time{}}, {"yard", at(3), at(3.5)}, {"gate", at(0), at(3).Add(59 * time.Second)},
	}, spans)
	spans, err = s.Spans(ctx, Filter{Camera: "gate", Before: at(2.5)})
	require.NoError(t, err)
	require.Equal(t, []Span{{"gate", at(0), at(2).Add(59 * time.Second)}}, spans)

	waiting, err := s.WaitingUploads(ctx)
	require.NoError(t, err)
	require.Equal(t, 1, waiting, "the clip of an event")
}

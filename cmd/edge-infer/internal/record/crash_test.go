package record

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/mp4/mp4test"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/postprocess/zone"
)

var kills = flag.Int("kills", 4, "kills of TestKilledWhileRecording")

// crashDirectory is the variable that makes the test binary record into a directory until it is killed.
const crashDirectory = "EDGE_INFER_TEST_CRASH_DIRECTORY"

const crashCameras = 16

// journal is an Index whose changes are lines of a file, as durable against a kill as a database is.
type journal struct {
	*memoryIndex
	file *os.File
}

// openJournal reads the changes of earlier processes. The last line may be torn.
func openJournal(path string) (*journal, error) {
	data, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	j := &journal{memoryIndex: newIndex()}
	whole := data[:bytes.LastIndexByte(data, '\n')+1]
	for line := range bytes.Lines(whole) {
		var clip Clip
		if err := json.Unmarshal(line, &clip); err != nil {
			return nil, err
		}
		j.clips[clip.ID] = clip
	}
	if err := os.WriteFile(path, whole, 0o600); err != nil {
		return nil, err
	}
	j.file, err = os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	return j, err
}

func (j *journal) append(clip *Clip) error {
	line, err := json.Marshal(clip)
	if err == nil {
		_, err = j.file.Write(append(line, '\n'))
	}
	return err
}

func (j *journal) OpenClip(ctx context.Context, clip *Clip) error {
	if err := j.append(clip); err != nil {
		return err
	}
	return j.memoryIndex.OpenClip(ctx, clip)
}

func (j *journal) UpdateClip(ctx context.Context, clip *Clip) error {
	if err := j.append(clip); err != nil {
		return err
	}
	return j.memoryIndex.UpdateClip(ctx, clip)
}

func (j *journal) AdoptClip(ctx context.Context, clip *Clip) error { return j.OpenClip(ctx, clip) }

// TestCrashChild records 16 cameras until it is killed, half of them continuously and half of them around an event. It is the other process
// of TestKilledWhileRecording.
func TestCrashChild(t *testing.T) {
	directory := os.Getenv(crashDirectory)
	if directory == "" {
		t.Skip("the other process of TestKilledWhileRecording")
	}
	video := mp4test.ReadTS(t, filepath.Join(directory, "video.ts"))
	index, err := openJournal(filepath.Join(directory, "rows"))
	require.NoError(t, err)
	progress, err := os.OpenFile(filepath.Join(directory, "progress"), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	require.NoError(t, err)
	recorder := &Recorder{
		Directory: filepath.Join(directory, "clips"), Index: index,
		Settings: Settings{Before: time.Second, After: time.Second, MaxBytes: 1 << 40, Sync: true},
		Logger:   slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
	var cameras []Camera
	var rings []*simulated
	for i := range crashCameras {
		c := &simulated{name: fmt.Sprint("camera", i)}
		c.ring.Store(&capture.Ring{Keep: recorder.KeepUnits()})
		rings = append(rings, c)
		cameras = append(cameras, Camera{Name: c.name, Source: c, Continuous: i%2 == 1, WithoutClips: i%2 == 1})
	}
	recorder.Open(cameras)
	go func() { _ = recorder.Run(t.Context()) }()
	begun := time.Now()
	for n := 0; ; n++ {
		unit := video[n%len(video)]
		lap := time.Duration(n/len(video)) * (video[len(video)-1].PTS + 40*time.Millisecond)
		time.Sleep(lap + time.Duration(unit.Received) - time.Since(begun))
		unit.PTS += lap
		for i, c := range rings {
			unit.Received = capture.Monotonic()
			c.ring.Load().Put(unit)
			_, err := progress.WriteAt(binary.LittleEndian.AppendUint64(nil, uint64(unit.Received)), int64(8*i))
			require.NoError(t, err)
			if n == 0 {
				recorder.Frame(&pipeline.Result{
					Camera: c.name, Captured: unit.Received, Labels: []string{"person"},
					Events: &zone.Result{Events: []zone.Event{
						{Kind: zone.New, Object: &zone.Object{Track: uint64(i), Start: time.Now()}, Zone: -1, Line: -1},
					}},
				})
			}
		}
	}
}

// TestKilledWhileRecording kills a process that records 16 cameras, at random moments. The next start repairs every file; nothing is
// recorded twice, and nothing is linked that does not exist.
func TestKilledWhileRecording(t *testing.T) {
	source := mp4test.Video(t, "libx264", 4, time.Second, "-bf", "2")
	data, err := os.ReadFile(source)
	require.NoError(t, err)
	const perDirectory = 4
	var all sync.WaitGroup
	var mu sync.Mutex
	var lost []time.Duration
	clips, cut := 0, 0
	queue := make(chan int)
	for range 2 {
		all.Go(func() {
			for n := range queue {
				random := rand.New(rand.NewPCG(3, uint64(n)))
				directory := t.TempDir()
				require.NoError(t, os.WriteFile(filepath.Join(directory, "video.ts"), data, 0o600))
				for range min(perDirectory, *kills-n) {
					crash(t, directory, time.Duration(random.IntN(2500))*time.Millisecond)
					newLost, found, repaired := recover16(t, directory)
					mu.Lock()
					lost = append(lost, newLost...)
					clips += found
					cut += repaired
					mu.Unlock()
				}
			}
		})
	}
	for n := 0; n < *kills; n += perDirectory {
		queue <- n
	}
	close(queue)
	all.Wait()
	most := time.Duration(0)
	for _, l := range lost {
		most = max(most, l)
	}
	t.Logf("%d kills, %d clips of %d cameras repaired or found, %d of them cut; lost at most %s", *kills, clips, crashCameras, cut, most)
	assert.NotEmpty(t, lost)
}

// crash records into a directory and kills the process some time after it has begun.
func crash(t *testing.T, directory string, after time.Duration) {
	child := exec.Command(os.Args[0], "-test.run=^TestCrashChild$")
	child.Env = append(os.Environ(), crashDirectory+"="+directory)
	var output bytes.Buffer
	child.Stdout, child.Stderr = &output, &output
	_ = os.Remove(filepath.Join(directory, "progress"))
	require.NoError(t, child.Start())
	progress := filepath.Join(directory, "progress")
	require.Eventually(t, func() bool {
		info, err := os.Stat(progress)
		return err == nil && info.Size() == 8*crashCameras
	}, time.Minute, 5*time.Millisecond)
	time.Sleep(after)
	require.NoError(t, child.Process.Kill())
	_ = child.Wait()
	require.NotContains(t, output.String(), "FAIL")
}

// recover16 starts anew in a directory. It returns how much video of each camera is not in its newest clip, the clips that were open, and
// how many of them had to be cut.
func recover16(t *testing.T, directory string) (lost []time.Duration, open, cut int) {
	index, err := openJournal(filepath.Join(directory, "rows"))
	require.NoError(t, err)
	defer index.file.Close()
	before := map[string]Clip{}
	sizes := map[string]int64{}
	r := &Recorder{Directory: filepath.Join(directory, "clips"), Index: index, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}
	r.Open(nil)
	defer r.Close()
	for _, clip := range index.all() {
		before[clip.ID] = clip
		if info, err := os.Stat(r.file(&clip)); err == nil {
			sizes[clip.ID] = info.Size()
		}
	}
	offset := time.Now().UnixNano() - capture.Monotonic()
	require.NoError(t, r.prepare(t.Context()))
	require.NoError(t, r.sweep(t.Context()))
	rows := index.all()
	paths := map[string]bool{}
	newest := map[string]Clip{}
	for i := range rows {
		clip := &rows[i]
		require.NotEqual(t, Open, clip.State)
		if clip.State == Lost {
			require.NoFileExists(t, r.file(clip))
			continue
		}
		paths[clip.Path] = true
		if before[clip.ID].State != Open {
			continue
		}
		open++
		if sizes[clip.ID] != clip.Bytes {
			cut++
		}
		check(t, r.file(clip), clip)
		if open%5 == 1 {
			probe(t, r.file(clip))
		}
		if clip.Start.After(newest[clip.Camera].Start) {
			newest[clip.Camera] = *clip
		}
	}
	files, err := filepath.Glob(filepath.Join(r.Directory, "*", "*.mp4"))
	require.NoError(t, err)
	for _, path := range files {
		relative, err := filepath.Rel(r.Directory, path)
		require.NoError(t, err)
		require.True(t, paths[filepath.ToSlash(relative)], "%s has no row", path)
	}
	progress, err := os.ReadFile(filepath.Join(directory, "progress"))
	require.NoError(t, err)
	for i := range crashCameras {
		clip, found := newest[fmt.Sprint("camera", i)]
		if !found {
			continue
		}
		last := int64(binary.LittleEndian.Uint64(progress[8*i:]))
		end := clip.Start.UnixNano() + int64(clip.Duration) - offset
		lost = append(lost, time.Duration(last-end))
	}
	return lost, open, cut
}

// TestRepair cuts a file at every length: what is left is a clip or nothing.
func TestRepair(t *testing.T) {
	units := encode(t, "libx264", 2, time.Second, "-vf", "scale=64:48")
	file := write(t, units)
	directory := t.TempDir()
	r := &Recorder{Directory: directory, Index: newIndex(), Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}
	whole, err := readContents(bytes.NewReader(file), int64(len(file)))
	require.NoError(t, err)
	for size := 0; size <= len(file); size += 1 + size/200 {
		row := &Clip{ID: "x", Camera: "c", Path: "clip.mp4", State: Open}
		require.NoError(t, os.WriteFile(r.file(row), file[:size], 0o600))
		require.NoError(t, r.repair(row))
		if row.State == Lost {
			require.NoFileExists(t, r.file(row))
			continue
		}
		check(t, r.file(row), row)
		require.LessOrEqual(t, row.Duration, whole.duration)
	}
}

// TestSweep: rows without a file are lost, files without a row are adopted or removed, and files of others are left alone.
func TestSweep(t *testing.T) {
	video := write(t, encode(t, "libx264", 2, time.Second, "-vf", "scale=64:48"))
	directory := t.TempDir()
	index := newIndex()
	logger := slog.New(slog.NewTextHandler(io.Discard, nil))
	r := &Recorder{Directory: directory, Index: index, Settings: Settings{MaxBytes: 1 << 30}, Logger: logger}
	r.Open(nil)
	defer r.Close()
	require.NoError(t, r.prepare(t.Context()))
	name := func(n int) string { return fmt.Sprintf("gate/20261125T10000%d-abcdefghij.mp4", n) }
	create := func(path string, data []byte) {
		full := filepath.Join(directory, path)
		require.NoError(t, os.MkdirAll(filepath.Dir(full), 0o750))
		require.NoError(t, os.WriteFile(full, data, 0o600))
	}
	withRow := func(clip *Clip) []byte {
		row, err := rowBox(clip)
		require.NoError(t, err)
		moof := bytes.Index(video, []byte("moof")) - 4
		return append(append(bytes.Clone(video[:moof]), row...), video[moof:]...)
	}
	require.NoError(t, index.OpenClip(t.Context(), &Clip{ID: "gone", Path: name(1), State: Closed, Bytes: 5}))
	require.NoError(t, index.OpenClip(t.Context(), &Clip{ID: "open", Path: name(2), State: Open}))
	create(name(2), video[:len(video)-5])
	create(name(3), withRow(&Clip{ID: "adopted", Camera: "gate", Events: []string{"1.5-7"}, State: Open}))
	create(name(4), video) // no row in it
	create(name(5), nil)
	create("gate/holiday.mp4", []byte("not ours"))
	require.NoError(t, r.sweep(t.Context()))
	states := map[string]State{}
	for _, clip := range index.all() {
		states[clip.ID] = clip.State
		if clip.State == Closed {
			check(t, r.file(&clip), &clip)
		}
	}
	assert.Equal(t, map[string]State{"gone": Lost, "open": Closed, "adopted": Closed}, states)
	assert.Equal(t, []string{"1.5-7"}, index.clips["adopted"].Events)
	assert.NoFileExists(t, filepath.Join(directory, name(4)))
	assert.NoFileExists(t, filepath.Join(directory, name(5)))
	assert.FileExists(t, filepath.Join(directory, "gate/holiday.mp4"))
	clips, size := r.quota.usage()
	assert.Equal(t, 2, clips)
	assert.Equal(t, index.clips["open"].Bytes+index.clips["adopted"].Bytes, size)

	require.NoError(t, os.Rename(directory, directory+"-elsewhere")) // the disk is not mounted
	err := r.prepare(t.Context())
	require.ErrorContains(t, err, marker+" is missing, with the clips: mount the disk, or create this file to begin without them")
	assert.NoDirExists(t, directory)
}

// FuzzReadContents: files may have been damaged or made by others.
func FuzzReadContents(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x08moov\x00\x00\x00\x08moof\x00\x00\x00\x08mdat"))
	f.Add([]byte("\x00\x00\x00\x08moov\x00\x00\x00\x1auuid" + ownBox + "{}"))
	f.Add([]byte(strings.Repeat("\x00\x00\x00\x08free", 3)))
	f.Fuzz(func(t *testing.T, data []byte) {
		found, err := readContents(bytes.NewReader(data), int64(len(data)))
		if err == nil {
			require.LessOrEqual(t, found.size, int64(len(data)))
			require.GreaterOrEqual(t, found.duration, time.Duration(0))
		}
	})
}

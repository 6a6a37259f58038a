package record_test

import (
	"bytes"
	"encoding/binary"
	"flag"
	"fmt"
	"io/fs"
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
	"golang.org/x/sys/unix"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/mp4/mp4test"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/record"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/store"
	"github.com/edge-infer/edge-infer/internal/testtool"
	"github.com/edge-infer/edge-infer/postprocess/zone"
)

var powerCuts = flag.Int("powercuts", 2, "power cuts of TestPowerCuts")

// Variables that make the test binary record into directories until it is killed.
const (
	powerDisk     = "EDGE_INFER_TEST_POWER_DISK"     // loses its power
	powerProgress = "EDGE_INFER_TEST_POWER_PROGRESS" // does not
)

const (
	powerCameras   = 16
	writtenThrough = "sync" // name of the directory of a process with Recorder.Sync
)

// disk is an ext4 file system in a file.
type disk struct {
	t                *testing.T
	image, directory string
}

func newDisk(t *testing.T) *disk {
	d := &disk{t: t, image: filepath.Join(t.TempDir(), "disk"), directory: filepath.Join(t.TempDir(), "mounted")}
	require.NoError(t, os.Mkdir(d.directory, 0o755))
	require.NoError(t, os.WriteFile(d.image, nil, 0o600))
	require.NoError(t, os.Truncate(d.image, 512<<20))
	out, err := exec.Command(testtool.Program(t, "mkfs.ext4"), "-q", d.image).CombinedOutput()
	require.NoError(t, err, "%s", out)
	err = d.mount()
	if err != nil {
		t.Skipf("no file system can be mounted: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(d.directory, unix.MNT_DETACH) })
	return d
}

// mount mounts the disk. Nothing that was not synced is written for as long as a test takes, but for what others' syncs take along.
func (d *disk) mount() error {
	out, err := exec.Command("mount", "-o", "loop,commit=600", d.image, d.directory).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// cut takes the power from the disk: what was not synced is lost, and later writes fail.
func (d *disk) cut() {
	directory, err := os.Open(d.directory)
	require.NoError(d.t, err)
	defer directory.Close()
	const shutdown, withoutLog = 0x8004587d, 2 // FS_IOC_SHUTDOWN, EXT4_GOING_FLAGS_NOLOGFLUSH
	require.NoError(d.t, unix.IoctlSetPointerInt(int(directory.Fd()), shutdown, withoutLog))
}

// openPower opens store and recorder as the daemon does. Clips that are not written through have a disk of their own: otherwise the syncs
// of the database would take them along.
func openPower(disk, progress string) (*store.Store, *record.Recorder) {
	sync := filepath.Base(progress) == writtenThrough
	quiet := slog.New(slog.DiscardHandler)
	s := &store.Store{Directory: filepath.Join(disk, "events"), Logger: quiet}
	if !sync {
		s.Directory = filepath.Join(progress, "events")
	}
	s.Open()
	r := &record.Recorder{
		Directory: filepath.Join(disk, "clips"), Index: s,
		Settings: record.Settings{Before: time.Second, After: time.Second, MaxBytes: 1 << 40, Sync: sync},
		Logger:   quiet,
	}
	return s, r
}

// source is a camera of TestPowerChild.
type source struct{ ring capture.Ring }

func (s *source) Ring() *capture.Ring { return &s.ring }

// TestPowerChild stores events of 16 cameras and records them until it is killed. Half of the cameras are recorded all the time, four of
// these continuously and four because of an event, and half of them have an event every two seconds. It is the other process of
// TestPowerCuts.
func TestPowerChild(t *testing.T) {
	disk := os.Getenv(powerDisk)
	if disk == "" {
		t.Skip("the other process of TestPowerCuts")
	}
	progress := os.Getenv(powerProgress)
	video := mp4test.ReadTS(t, filepath.Join(progress, "video.ts"))
	received, err := os.Create(filepath.Join(progress, "received"))
	require.NoError(t, err)
	published, err := os.OpenFile(filepath.Join(progress, "published"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	require.NoError(t, err)
	s, r := openPower(disk, progress)
	var cameras []record.Camera
	var sources []*source
	for i := range powerCameras {
		c := &source{capture.Ring{Keep: r.KeepUnits()}}
		sources = append(sources, c)
		cameras = append(cameras, record.Camera{Name: fmt.Sprint("camera", i), Source: c, Continuous: i%4 == 2, WithoutClips: i%4 == 2})
	}
	r.Open(cameras)
	go func() { _ = r.Run(t.Context()) }()
	begun := time.Now()
	for n := 0; ; n++ {
		unit := video[n%len(video)]
		lap := time.Duration(n/len(video)) * (video[len(video)-1].PTS + 40*time.Millisecond)
		time.Sleep(lap + time.Duration(unit.Received) - time.Since(begun))
		unit.PTS += lap
		for i, c := range sources {
			unit.Received = capture.Monotonic()
			c.ring.Put(unit)
			_, err := received.WriteAt(binary.LittleEndian.AppendUint64(nil, uint64(unit.Received)), int64(8*i))
			require.NoError(t, err)
			if n == 0 {
				_, err := received.WriteAt(binary.LittleEndian.AppendUint64(nil, uint64(unit.Received)), int64(8*(powerCameras+i)))
				require.NoError(t, err)
			}
			o := &zone.Object{Track: uint64(100*n + i), Start: time.Now()}
			switch {
			case n == 0, i%2 == 1 && n%50 == 3*i:
				publish(t, s, r, cameras[i].Name, o, zone.New, published)
				if i%2 == 1 {
					publish(t, s, r, cameras[i].Name, o, zone.End, published)
				}
			}
		}
	}
}

// publish hands over an event as the frame loop does, and notes it in a file where it would be published.
func publish(t *testing.T, s *store.Store, r *record.Recorder, camera string, o *zone.Object, kind zone.Kind, published *os.File) {
	in := &pipeline.Result{
		Camera: camera, Captured: capture.Monotonic(), Labels: []string{"person"}, Tracker: new(pipeline.Tracker),
		Events: &zone.Result{Events: []zone.Event{{Kind: kind, Object: o, Zone: -1, Line: -1}}},
	}
	s.Add(store.EventOf(in, &in.Events.Events[0]))
	r.Frame(in)
	s.Settle()
	if stats := s.Stats(); stats.Error == "" && stats.Queued == 0 && stats.Dropped == 0 {
		_, err := fmt.Fprintln(published, camera, o.ID())
		require.NoError(t, err)
	}
	image := bytes.Repeat([]byte(o.ID()), 500)
	s.AddSnapshot(&store.Snapshot{Camera: camera, ID: o.ID(), Frame: image, Crop: image[:100], Width: 64, Height: 48})
}

// TestPowerCuts takes the power from the disk of a process that stores events of 16 cameras and records them, at random moments. Every
// published event is there afterwards, less than a second of video is lost, every file plays, and every link leads to a file.
func TestPowerCuts(t *testing.T) {
	source := mp4test.Video(t, "libx264", 4, time.Second, "-bf", "2")
	const perDisk = 2
	var all sync.WaitGroup
	var mu sync.Mutex
	total := map[bool]*recovered{true: {}, false: {}}
	for worker := range 2 { // one of them writes through
		all.Go(func() {
			through := worker == 0
			for n := worker; n < *powerCuts; n += 2 * perDisk {
				d := newDisk(t)
				progress := filepath.Join(t.TempDir(), map[bool]string{true: writtenThrough, false: "lazy"}[through])
				require.NoError(t, os.Mkdir(progress, 0o755))
				require.NoError(t, os.Link(source, filepath.Join(progress, "video.ts")))
				random := rand.New(rand.NewPCG(4, uint64(n)))
				for range min(perDisk, (*powerCuts-n+1)/2) {
					d.record(progress, time.Duration(random.IntN(5000))*time.Millisecond)
					found := d.recover(progress, through)
					mu.Lock()
					total[through].add(found)
					mu.Unlock()
				}
			}
		})
	}
	all.Wait()
	for through, found := range total {
		t.Logf("sync %t: %d power cuts, %d events published, %d clips repaired or found, %d rows without a file; lost at most %s",
			through, found.cuts, found.events, found.clips, found.lostRows, found.most)
	}
}

// record records until the power fails, some time after the last camera's first packet.
func (d *disk) record(progress string, after time.Duration) {
	t := d.t
	child := exec.Command(os.Args[0], "-test.run=^TestPowerChild$")
	child.Env = append(os.Environ(), powerDisk+"="+d.directory, powerProgress+"="+progress)
	var output bytes.Buffer
	child.Stdout, child.Stderr = &output, &output
	received := filepath.Join(progress, "received")
	_ = os.Remove(received)
	require.NoError(t, child.Start())
	require.Eventually(t, func() bool {
		info, err := os.Stat(received)
		return err == nil && info.Size() == 2*8*powerCameras
	}, time.Minute, 5*time.Millisecond, "%s", &output)
	time.Sleep(after)
	freeze(t, child.Process)
	d.cut()
	require.NoError(t, child.Process.Kill())
	_ = child.Wait()
	require.NotContains(t, output.String(), "FAIL")
	require.Eventually(t, func() bool { return unix.Unmount(d.directory, 0) == nil }, time.Minute, 10*time.Millisecond)
	require.NoError(t, d.mount())
}

// freeze stops all threads of a process at once, as a power cut does.
func freeze(t *testing.T, process *os.Process) {
	require.NoError(t, process.Signal(unix.SIGSTOP))
	stopped := func() bool {
		states, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", process.Pid))
		require.NoError(t, err)
		for _, path := range states {
			line, err := os.ReadFile(path)
			if err == nil && !bytes.Contains(line, []byte(") T ")) {
				return false
			}
		}
		return true
	}
	require.Eventually(t, stopped, time.Minute, time.Millisecond)
}

// recovered is what starts after power cuts have found.
type recovered struct {
	cuts, events, clips, lostRows int
	most                          time.Duration
}

func (r *recovered) add(other recovered) {
	r.cuts += other.cuts
	r.events += other.events
	r.clips += other.clips
	r.lostRows += other.lostRows
	r.most = max(r.most, other.most)
}

// recover starts anew on a disk that has lost its power.
func (d *disk) recover(progress string, through bool) recovered {
	t := d.t
	found := recovered{cuts: 1}
	offset := time.Now().UnixNano() - capture.Monotonic()
	s, r := openPower(d.directory, progress)
	defer func() { assert.NoError(t, s.Close()) }()
	require.Empty(t, s.Stats().Error)
	r.Open(nil)
	defer r.Close()
	before := map[string]record.State{}
	clips := func(each func(clip *record.Clip)) {
		require.NoError(t, s.Clips(t.Context(), func(clip *record.Clip) bool {
			each(clip)
			return true
		}))
	}
	clips(func(clip *record.Clip) { before[clip.ID] = clip.State })
	require.NoError(t, r.Recover(t.Context()))
	states := map[string]record.State{}
	paths := map[string]bool{}
	newest := map[string]time.Time{} // end of a camera's newest clip
	clips(func(clip *record.Clip) {
		states[clip.ID] = clip.State
		require.NotEqual(t, record.Open, clip.State)
		if before[clip.ID] == record.Lost {
			return
		}
		if clip.State == record.Lost {
			require.NotEqual(t, record.Closed, before[clip.ID], "%s was complete", clip.Path)
			require.NoFileExists(t, r.File(clip))
			found.lostRows++
			return
		}
		paths[clip.Path] = true
		record.Check(t, r.File(clip), clip)
		if end := clip.Start.Add(clip.Duration); end.After(newest[clip.Camera]) {
			newest[clip.Camera] = end
		}
		if before[clip.ID] == record.Closed {
			return
		}
		found.clips++
		if found.clips%5 == 1 {
			record.Probe(t, r.File(clip))
		}
	})
	require.NoError(t, filepath.WalkDir(r.Directory, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".mp4") {
			relative, _ := filepath.Rel(r.Directory, path)
			require.True(t, paths[filepath.ToSlash(relative)], "%s has no row", path)
		}
		return err
	}))
	data, err := os.ReadFile(filepath.Join(progress, "received"))
	require.NoError(t, err)
	for i := 0; through && i < powerCameras; i += 2 { // those that are recorded all the time
		last := int64(binary.LittleEndian.Uint64(data[8*i:])) + offset
		end, known := newest[fmt.Sprint("camera", i)]
		begin := int64(binary.LittleEndian.Uint64(data[8*(powerCameras+i):])) + offset
		if !known || end.UnixNano() < begin { // nothing of this run
			end = time.Unix(0, begin)
		}
		found.most = max(found.most, time.Unix(0, last).Sub(end))
	}
	found.events = checkEvents(t, s, progress, states)
	return found
}

// checkEvents requires that every published event is stored and that every link of an event leads to a file.
func checkEvents(t *testing.T, s *store.Store, progress string, clips map[string]record.State) (published int) {
	stored := map[string]bool{}
	for cursor := ""; ; {
		page, next, err := s.Events(t.Context(), store.Filter{Limit: store.MaxPage, Cursor: cursor})
		require.NoError(t, err)
		for i := range page {
			e := &page[i]
			stored[e.Camera+" "+e.ID] = true
			require.True(t, e.Ended)
			if e.Clip != "" {
				require.Equal(t, record.Closed, clips[e.Clip], "link of event %s", e.ID)
			}
			for _, open := range []func(*store.Event) (*os.File, error){s.FrameFile, s.CropFile} {
				if e.Frame == 0 {
					break
				}
				file, err := open(e)
				require.NoError(t, err)
				image, err := os.ReadFile(file.Name())
				require.NoError(t, err)
				require.NoError(t, file.Close())
				require.True(t, bytes.HasPrefix(image, []byte(e.ID)) && !bytes.Contains(image, []byte{0}), "image of %s", e.ID)
			}
		}
		if cursor = next; next == "" {
			break
		}
	}
	data, err := os.ReadFile(filepath.Join(progress, "published"))
	require.NoError(t, err)
	for line := range strings.Lines(string(data)) {
		require.True(t, stored[strings.TrimSpace(line)], "event %s was published and is not stored", line)
		published++
	}
	return published
}

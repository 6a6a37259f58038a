package mqtt

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func openSpool(t testing.TB, config Spool) *spool {
	t.Helper()
	s := &spool{Spool: config, log: discard(), notify: func() {}}
	require.NoError(t, s.open())
	t.Cleanup(func() { s.close() })
	return s
}

func (s *spool) add(payload string) uint64 {
	return s.offer("topic", func(buf []byte, _ uint64) []byte { return append(buf, payload...) })
}

// drain reads everything, acknowledges it when asked to, and returns the payloads.
func (s *spool) drain(acknowledge bool) []string {
	var payloads []string
	for cursor := uint64(0); ; {
		e, ok := s.next(cursor, nil)
		if !ok {
			return payloads
		}
		payloads = append(payloads, string(e.payload))
		cursor = e.number
		if acknowledge {
			s.acknowledge(e.number)
		}
	}
}

func (s *spool) balance(t testing.TB) Account {
	t.Helper()
	a := s.ledger.read()
	require.Equal(t, a.Offered, a.Delivered+a.Dropped+a.Queued, "%+v", a)
	s.mu.Lock()
	defer s.mu.Unlock()
	require.Equal(t, int(a.Queued), s.stored.len()+s.writing.len()+s.tail.len())
	return a
}

func numbers(from, to int) []string {
	var list []string
	for i := from; i < to; i++ {
		list = append(list, strconv.Itoa(i))
	}
	return list
}

func TestSpoolKeepsOrderOverRestarts(t *testing.T) {
	for name, directory := range map[string]string{"disk": t.TempDir(), "memory": ""} {
		t.Run(name, func(t *testing.T) {
			s := openSpool(t, Spool{Directory: directory})
			for i := range 300 {
				s.add(strconv.Itoa(i))
				if i%100 == 50 {
					require.NoError(t, s.sync())
				}
			}
			assert.Equal(t, numbers(0, 300), s.drain(false))
			assert.Equal(t, Account{Offered: 300, Queued: 300}, s.balance(t))
			for i := range uint64(120) {
				s.acknowledge(i + 1)
			}
			s.acknowledge(5)   // a second time
			s.acknowledge(200) // out of turn
			assert.Equal(t, numbers(120, 300), s.drain(false))
			assert.Equal(t, Account{Offered: 300, Delivered: 120, Queued: 180}, s.balance(t))
			require.NoError(t, s.close())
			if directory == "" {
				return
			}
			s = openSpool(t, Spool{Directory: directory})
			assert.Equal(t, Account{Offered: 180, Queued: 180}, s.balance(t))
			assert.Equal(t, uint64(301), s.add("300"))
			assert.Equal(t, numbers(120, 301), s.drain(true))
			assert.Equal(t, Account{Offered: 181, Delivered: 181}, s.balance(t))
			require.NoError(t, s.close())
			files, err := filepath.Glob(filepath.Join(directory, "*"+segmentSuffix))
			require.NoError(t, err)
			assert.Empty(t, files, "an empty queue takes no space")
			s = openSpool(t, Spool{Directory: directory})
			assert.Equal(t, uint64(302), s.add("x"), "numbers are never used again")
		})
	}
}

func TestSpoolCaps(t *testing.T) {
	for _, c := range []struct {
		name   string
		config Spool
		want   []string
	}{
		{"messages", Spool{MaxMessages: 30}, numbers(70, 100)},
		{"bytes", Spool{MaxBytes: 20 * int64(recordHeader+len("topic")+2)}, numbers(80, 100)},
		{"age", Spool{MaxAge: time.Nanosecond}, nil},
	} {
		for _, synced := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, on disk %v", c.name, synced), func(t *testing.T) {
				c.config.Directory = t.TempDir()
				s := openSpool(t, c.config)
				for i := range 100 {
					s.add(strconv.Itoa(i))
					if synced && i%7 == 0 {
						require.NoError(t, s.sync())
					}
				}
				time.Sleep(2 * time.Millisecond)
				assert.Equal(t, c.want, s.drain(false))
				a := s.balance(t)
				assert.Equal(t, Account{Offered: 100, Dropped: uint64(100 - len(c.want)), Queued: uint64(len(c.want))}, a)
				require.NoError(t, s.close())
				s = openSpool(t, c.config)
				assert.Equal(t, c.want, s.drain(false))
			})
		}
	}
}

func TestSpoolDiskUseStaysUnderTheCap(t *testing.T) {
	const limit = 1 << 20
	directory := t.TempDir()
	s := openSpool(t, Spool{Directory: directory, MaxBytes: limit})
	payload := string(make([]byte, 1000))
	for i := range 5000 {
		s.add(payload)
		if i%200 == 0 {
			require.NoError(t, s.sync())
		}
	}
	require.NoError(t, s.sync())
	var size int64
	files, err := os.ReadDir(directory)
	require.NoError(t, err)
	for _, file := range files {
		info, err := file.Info()
		require.NoError(t, err)
		size += info.Size()
	}
	assert.Less(t, size, int64(1.5*limit))
	assert.Greater(t, size, int64(limit/2))
	s.balance(t)
}

func TestSpoolWithoutClock(t *testing.T) {
	s := openSpool(t, Spool{MaxAge: time.Hour})
	s.add("before the clock was set")
	s.mu.Lock()
	s.tail.live()[0].at = 1000 // 1970
	s.mu.Unlock()
	s.add("now")
	assert.Len(t, s.drain(false), 2)
}

func TestSpoolRefusesWhatIsTooLong(t *testing.T) {
	s := openSpool(t, Spool{})
	s.add(string(make([]byte, recordLimit)))
	s.add("fits")
	assert.Equal(t, []string{"fits"}, s.drain(true))
	assert.Equal(t, Account{Offered: 2, Delivered: 1, Dropped: 1}, s.balance(t))
}

func TestSpoolDirectoryInUse(t *testing.T) {
	directory := t.TempDir()
	openSpool(t, Spool{Directory: directory})
	second := &spool{Spool: Spool{Directory: directory}, log: discard(), notify: func() {}}
	assert.EqualError(t, second.open(), "event spool "+directory+": in use by another process (give each instance its own directory)")
}

func TestSpoolFallsBackToMemory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	log := &journal{}
	s := &spool{Spool: Spool{Directory: filepath.Join(file, "spool")}, log: log.logger(), notify: func() {}}
	require.NoError(t, s.open())
	defer s.close()
	s.add("1")
	assert.Equal(t, []string{"1"}, s.drain(false))
	assert.ErrorContains(t, s.state(), "not a directory")
	assert.Contains(t, log.String(), "event spool cannot be used, events are kept in memory only")
}

// TestSpoolDamage changes, cuts and extends the files at random. Opening must never fail, what is read must be what was written, in order,
// and only damaged files may lose events.
func TestSpoolDamage(t *testing.T) {
	random := rand.New(rand.NewPCG(11, 12))
	for round := range 25 {
		directory := t.TempDir()
		s := openSpool(t, Spool{Directory: directory, MaxBytes: 1 << 20}) // 64 KiB files
		for i := range 600 {
			s.add(fmt.Sprintf("%d %0400d", i, i))
			if i%50 == 0 {
				require.NoError(t, s.sync())
			}
		}
		require.NoError(t, s.close())
		files, err := filepath.Glob(filepath.Join(directory, "*"))
		require.NoError(t, err)
		path := files[random.IntN(len(files))]
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		switch kind := random.IntN(4); {
		case kind == 0 && len(data) > 0:
			for range 1 + random.IntN(8) {
				data[random.IntN(len(data))] ^= byte(1 + random.IntN(255))
			}
		case kind == 1:
			data = data[:random.IntN(len(data)+1)]
		case kind == 2:
			data = append(data, make([]byte, random.IntN(200))...)
		default:
			for range random.IntN(200) {
				data = append(data, byte(random.Uint32()))
			}
		}
		require.NoError(t, os.WriteFile(path, data, 0o600))

		s = openSpool(t, Spool{Directory: directory, MaxBytes: 1 << 20})
		require.NotEmpty(t, s.Directory, "round %d: %v", round, s.state())
		last := -1
		for _, payload := range s.drain(true) {
			var number, again int
			_, err := fmt.Sscanf(payload, "%d %d", &number, &again)
			require.NoError(t, err)
			require.Equal(t, number, again)
			require.Greater(t, number, last)
			last = number
		}
		s.add("after")
		require.NoError(t, s.sync())
		require.Equal(t, []string{"after"}, s.drain(true))
		s.balance(t)
		require.NoError(t, s.close())
	}
}

func TestSpoolMovesDamageAside(t *testing.T) {
	directory := t.TempDir()
	s := openSpool(t, Spool{Directory: directory})
	for i := range 10 {
		s.add(strconv.Itoa(i))
	}
	require.NoError(t, s.close())
	files, err := filepath.Glob(filepath.Join(directory, "*"+segmentSuffix))
	require.NoError(t, err)
	require.Len(t, files, 1)
	data, err := os.ReadFile(files[0])
	require.NoError(t, err)
	size := recordHeader + len("topic") + 1
	data[len(segmentMark)+5*size+recordHeader] ^= 0xff // in the sixth record
	require.NoError(t, os.WriteFile(files[0], data, 0o600))
	log := &journal{}
	s = &spool{Spool: Spool{Directory: directory}, log: log.logger(), notify: func() {}}
	require.NoError(t, s.open())
	defer s.close()
	assert.Equal(t, numbers(0, 5), s.drain(false))
	kept, err := os.ReadFile(files[0] + damagedSuffix)
	require.NoError(t, err)
	assert.Len(t, kept, 5*size)
	assert.Contains(t, log.String(), "event spool file was damaged, its good part is kept and the rest moved aside")
}

// TestSpoolTornWrite cuts the newest file at every byte of its last batch, as a power cut in mid-write does, with nothing or zeros behind.
func TestSpoolTornWrite(t *testing.T) {
	directory := t.TempDir()
	s := openSpool(t, Spool{Directory: directory})
	for i := range 10 {
		s.add(strconv.Itoa(i))
		if i == 6 {
			require.NoError(t, s.sync())
		}
	}
	require.NoError(t, s.close())
	files, err := filepath.Glob(filepath.Join(directory, "*"+segmentSuffix))
	require.NoError(t, err)
	require.Len(t, files, 1)
	whole, err := os.ReadFile(files[0])
	require.NoError(t, err)
	size := recordHeader + len("topic") + 1
	synced := len(segmentMark) + 7*size
	require.Len(t, whole, synced+3*size)
	for cut := synced; cut <= len(whole); cut++ {
		for _, zeros := range []int{0, len(whole) - cut, 4096} {
			data := append(append([]byte{}, whole[:cut]...), make([]byte, zeros)...)
			require.NoError(t, os.WriteFile(files[0], data, 0o600))
			s := openSpool(t, Spool{Directory: directory})
			require.Equal(t, numbers(0, 7+(cut-synced)/size), s.drain(false), "cut at %d, %d zeros", cut, zeros)
			require.NoError(t, s.close())
		}
	}
}

// TestSpoolOnFullDisk fills a real file system. What was safe stays, what comes meanwhile waits in memory, and is written when there is room.
func TestSpoolOnFullDisk(t *testing.T) {
	directory := t.TempDir()
	if err := syscall.Mount("tmpfs", directory, "tmpfs", 0, "size=400k"); err != nil {
		t.Skipf("cannot mount a small file system: %v", err)
	}
	t.Cleanup(func() { syscall.Unmount(directory, syscall.MNT_DETACH) })
	config := Spool{Directory: filepath.Join(directory, "spool"), MaxBytes: 1 << 20, Commit: time.Millisecond}
	s := openSpool(t, config)
	const before, during = 100, 500
	for i := range before {
		s.add(fmt.Sprintf("%d %01000d", i, 0))
	}
	require.NoError(t, s.sync())
	hog := filepath.Join(directory, "hog")
	file, err := os.Create(hog)
	require.NoError(t, err)
	for err == nil {
		_, err = file.Write(make([]byte, 4096))
	}
	file.Close()
	require.ErrorIs(t, err, syscall.ENOSPC)
	for i := range during {
		s.add(fmt.Sprintf("%d %0100d", before+i, 0))
	}
	require.ErrorIs(t, s.sync(), syscall.ENOSPC)
	require.ErrorIs(t, s.state(), syscall.ENOSPC)
	require.Len(t, s.drain(false), before+during)
	assert.Equal(t, Account{Offered: before + during, Queued: before + during}, s.balance(t))
	for i := range uint64(10) {
		s.acknowledge(i + 1)
	}
	require.NoError(t, os.Remove(hog))
	require.NoError(t, s.sync())
	require.NoError(t, s.state())
	require.NoError(t, s.close())
	s = openSpool(t, config)
	defer s.close() // before the file system goes
	for i, payload := range s.drain(true) {
		require.True(t, strings.HasPrefix(payload, fmt.Sprintf("%d ", 10+i)), payload[:10])
	}
	assert.Equal(t, Account{Offered: before + during - 10, Delivered: before + during - 10}, s.balance(t))
}

// TestSpoolMemoryCap holds more than memory may while nothing can be written.
func TestSpoolMemoryCap(t *testing.T) {
	s := openSpool(t, Spool{MaxMemory: 10 * int64(recordHeader+len("topic")+2)})
	for i := range 90 {
		s.add(strconv.Itoa(10 + i))
	}
	assert.Equal(t, numbers(90, 100), s.drain(false))
	assert.Equal(t, Account{Offered: 90, Dropped: 80, Queued: 10}, s.balance(t))
}

// TestSpoolFileVanishes removes and cuts files under an open spool.
func TestSpoolFileVanishes(t *testing.T) {
	directory := t.TempDir()
	s := openSpool(t, Spool{Directory: directory, MaxBytes: 1 << 20})
	for i := range 400 {
		s.add(fmt.Sprintf("%0400d", i))
		if i%50 == 49 {
			require.NoError(t, s.sync())
		}
	}
	files, err := filepath.Glob(filepath.Join(directory, "*"+segmentSuffix))
	require.NoError(t, err)
	require.Greater(t, len(files), 1)
	require.NoError(t, os.Truncate(files[0], 1000))
	require.NoError(t, os.Remove(files[1])) // still open, so nothing is lost
	got := s.drain(true)
	a := s.balance(t)
	assert.Equal(t, uint64(len(got)), a.Delivered)
	assert.Positive(t, a.Dropped)
	assert.Zero(t, a.Queued)
}

func TestSpoolConcurrently(t *testing.T) {
	s := openSpool(t, Spool{Directory: t.TempDir(), Commit: time.Millisecond, MaxBytes: 1 << 20})
	const producers, each = 4, 500
	var group sync.WaitGroup
	for p := range producers {
		group.Go(func() {
			for i := range each {
				s.add(fmt.Sprintf("%d %d", p, i))
				if i%100 == 0 {
					time.Sleep(time.Millisecond)
				}
			}
		})
	}
	last := [producers]int{-1, -1, -1, -1}
	cursor, got := uint64(0), 0
	deadline := time.Now().Add(patience)
	for got < producers*each {
		e, ok := s.next(cursor, nil)
		if !ok {
			require.True(t, time.Now().Before(deadline), "%d of %d events", got, producers*each)
			time.Sleep(100 * time.Microsecond)
			continue
		}
		var p, i int
		_, err := fmt.Sscanf(string(e.payload), "%d %d", &p, &i)
		require.NoError(t, err)
		require.Equal(t, last[p]+1, i)
		last[p], cursor = i, e.number
		got++
		s.acknowledge(e.number)
	}
	group.Wait()
	assert.Equal(t, Account{Offered: producers * each, Delivered: producers * each}, s.balance(t))
}

func FuzzSegment(f *testing.F) {
	record := func(number uint64) []byte {
		return appendRecord(nil, number, 1, "topic", func(buf []byte) []byte { return append(buf, "payload"...) })
	}
	f.Add([]byte(segmentMark))
	f.Add(append([]byte(segmentMark), record(1)...))
	f.Add(append(append([]byte(segmentMark), record(2)...), record(1)...))
	f.Add(append([]byte(segmentMark), record(1)[:20]...))
	f.Add([]byte("something else entirely, longer than a header"))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "0"+segmentSuffix)
		require.NoError(t, os.WriteFile(path, data, 0o600))
		var last uint64
		count := 0
		s, _, err := openSegment(path, 0, func(e event, offset int64) {
			require.Greater(t, e.number, last)
			require.Equal(t, e.buffer, data[offset:int(offset)+len(e.buffer)])
			last = e.number
			count++
		})
		require.NoError(t, err)
		if s == nil {
			require.Zero(t, count)
			require.NoFileExists(t, path)
			return
		}
		defer s.file.Close()
		info, err := s.file.Stat()
		require.NoError(t, err)
		require.Equal(t, s.size, info.Size())
	})
}

func TestMarkReplayed(t *testing.T) {
	for in, want := range map[string]string{
		`{"v":1}`: `{"v":1,"replayed":true}`, `{}`: `{}`, `[1]`: `[1]`, ``: ``,
	} {
		e, err := readEvent(appendRecord(nil, 1, 1, "topic", func(buf []byte) []byte { return append(buf, in...) }))
		require.NoError(t, err)
		e.markReplayed()
		assert.Equal(t, want, string(e.payload))
	}
}

// BenchmarkSpoolOffer shows what the frame loop pays for an event.
func BenchmarkSpoolOffer(b *testing.B) {
	s := openSpool(b, Spool{Directory: b.TempDir(), MaxMessages: 10_000})
	e := &Event{Type: "new", Camera: "cam0", Label: "person", Score: 0.5, Box: [4]float64{1, 2, 3, 4}, Track: 3}
	b.ReportAllocs()
	for b.Loop() {
		s.offer("edge-infer/gate/cam0/events", func(buf []byte, number uint64) []byte { return e.appendJSON(buf, "gate", "run", number) })
	}
}

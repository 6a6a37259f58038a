package spool

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

	"github.com/edge-infer/edge-infer/mqtt/ledger"
	"github.com/edge-infer/edge-infer/mqtt/mqtttest"
)

func openSpool(t testing.TB, config Config) *Spool {
	t.Helper()
	s := &Spool{Config: config, Logger: mqtttest.Discard(), Notify: func() {}}
	require.NoError(t, s.Open())
	t.Cleanup(func() { s.Close() })
	return s
}

func (s *Spool) add(payload string) uint64 {
	return s.Offer("topic", func(buf []byte, _ uint64) []byte { return append(buf, payload...) })
}

// drain reads everything, acknowledges it when asked to, and returns the payloads.
func (s *Spool) drain(acknowledge bool) []string {
	var payloads []string
	for cursor := uint64(0); ; {
		e, ok := s.Next(cursor, nil)
		if !ok {
			return payloads
		}
		payloads = append(payloads, string(e.Payload))
		cursor = e.Number
		if acknowledge {
			s.Acknowledge(e.Number)
		}
	}
}

func (s *Spool) failureNow() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failure
}

func (s *Spool) balance(t testing.TB) ledger.Account {
	t.Helper()
	a := s.Account()
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
			s := openSpool(t, Config{Directory: directory})
			for i := range 300 {
				s.add(strconv.Itoa(i))
				if i%100 == 50 {
					require.NoError(t, s.Sync())
				}
			}
			assert.Equal(t, numbers(0, 300), s.drain(false))
			assert.Equal(t, ledger.Account{Offered: 300, Queued: 300}, s.balance(t))
			for i := range uint64(120) {
				s.Acknowledge(i + 1)
			}
			s.Acknowledge(5)   // a second time
			s.Acknowledge(200) // out of turn
			assert.Equal(t, numbers(120, 300), s.drain(false))
			assert.Equal(t, ledger.Account{Offered: 300, Delivered: 120, Queued: 180}, s.balance(t))
			require.NoError(t, s.Close())
			if directory == "" {
				return
			}
			s = openSpool(t, Config{Directory: directory})
			assert.Equal(t, ledger.Account{Offered: 180, Queued: 180}, s.balance(t))
			assert.Equal(t, uint64(301), s.add("300"))
			assert.Equal(t, numbers(120, 301), s.drain(true))
			assert.Equal(t, ledger.Account{Offered: 181, Delivered: 181}, s.balance(t))
			require.NoError(t, s.Close())
			files, err := filepath.Glob(filepath.Join(directory, "*"+segmentSuffix))
			require.NoError(t, err)
			assert.Empty(t, files, "an empty queue takes no space")
			s = openSpool(t, Config{Directory: directory})
			assert.Equal(t, uint64(302), s.add("x"), "numbers are never used again")
		})
	}
}

func TestSpoolCaps(t *testing.T) {
	for _, c := range []struct {
		name   string
		config Config
		want   []string
	}{
		{"messages", Config{MaxMessages: 30}, numbers(70, 100)},
		{"bytes", Config{MaxBytes: 20 * int64(recordHeader+len("topic")+2)}, numbers(80, 100)},
		{"age", Config{MaxAge: time.Nanosecond}, nil},
	} {
		for _, synced := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, on disk %v", c.name, synced), func(t *testing.T) {
				c.config.Directory = t.TempDir()
				s := openSpool(t, c.config)
				for i := range 100 {
					s.add(strconv.Itoa(i))
					if synced && i%7 == 0 {
						require.NoError(t, s.Sync())
					}
				}
				time.Sleep(2 * time.Millisecond)
				assert.Equal(t, c.want, s.drain(false))
				a := s.balance(t)
				assert.Equal(t, ledger.Account{Offered: 100, Dropped: uint64(100 - len(c.want)), Queued: uint64(len(c.want))}, a)
				require.NoError(t, s.Close())
				s = openSpool(t, c.config)
				assert.Equal(t, c.want, s.drain(false))
			})
		}
	}
}

func TestSpoolDiskUseStaysUnderTheCap(t *testing.T) {
	const limit = 1 << 20
	directory := t.TempDir()
	s := openSpool(t, Config{Directory: directory, MaxBytes: limit})
	payload := string(make([]byte, 1000))
	for i := range 5000 {
		s.add(payload)
		if i%200 == 0 {
			require.NoError(t, s.Sync())
		}
	}
	require.NoError(t, s.Sync())
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

func TestSpoolRefusesWhatIsTooLong(t *testing.T) {
	s := openSpool(t, Config{})
	s.add(string(make([]byte, RecordLimit)))
	s.add("fits")
	assert.Equal(t, []string{"fits"}, s.drain(true))
	assert.Equal(t, ledger.Account{Offered: 2, Delivered: 1, Dropped: 1}, s.balance(t))
}

func TestSpoolDirectoryInUse(t *testing.T) {
	directory := t.TempDir()
	openSpool(t, Config{Directory: directory})
	second := &Spool{Config: Config{Directory: directory}, Logger: mqtttest.Discard(), Notify: func() {}}
	assert.EqualError(t, second.Open(), fmt.Sprintf("event spool %s: already running as pid %d: stop it or set --name",
		directory, os.Getpid()))
}

func TestSpoolFallsBackToMemory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	log := &mqtttest.Journal{}
	s := &Spool{Config: Config{Directory: filepath.Join(file, "spool")}, Logger: log.Logger(), Notify: func() {}}
	require.NoError(t, s.Open())
	defer s.Close()
	s.add("1")
	assert.Equal(t, []string{"1"}, s.drain(false))
	assert.ErrorContains(t, s.failureNow(), "not a directory")
	assert.Contains(t, log.String(), "event spool cannot be used, events are kept in memory only")
}

// TestSpoolDamage changes, cuts and extends the files at random. Opening must never fail, what is read must be what was written, in order,
// and only damaged files may lose events.
func TestSpoolDamage(t *testing.T) {
	random := rand.New(rand.NewPCG(11, 12))
	for round := range 25 {
		directory := t.TempDir()
		s := openSpool(t, Config{Directory: directory, MaxBytes: 1 << 20}) // 64 KiB files
		for i := range 600 {
			s.add(fmt.Sprintf("%d %0400d", i, i))
			if i%50 == 0 {
				require.NoError(t, s.Sync())
			}
		}
		require.NoError(t, s.Close())
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

		s = openSpool(t, Config{Directory: directory, MaxBytes: 1 << 20})
		require.NotEmpty(t, s.Directory, "round %d: %v", round, s.failureNow())
		last := -1
		drained := s.drain(true)
		require.Equal(t, ledger.Account{Offered: 600, Delivered: uint64(len(drained)), Dropped: uint64(600 - len(drained))}, s.balance(t),
			"round %d, %s: what damage has cost is counted", round, path)
		for _, payload := range drained {
			var number, again int
			_, err := fmt.Sscanf(payload, "%d %d", &number, &again)
			require.NoError(t, err)
			require.Equal(t, number, again)
			require.Greater(t, number, last)
			last = number
		}
		s.add("after")
		require.NoError(t, s.Sync())
		require.Equal(t, []string{"after"}, s.drain(true))
		s.balance(t)
		require.NoError(t, s.Close())
	}
}

// TestSpoolTornWrite cuts the newest file at every byte of its last batch, as a power cut in mid-write does, with nothing or zeros behind.
func TestSpoolTornWrite(t *testing.T) {
	directory := t.TempDir()
	s := openSpool(t, Config{Directory: directory})
	for i := range 10 {
		s.add(strconv.Itoa(i))
		if i == 6 {
			require.NoError(t, s.Sync())
		}
	}
	require.NoError(t, s.Close())
	files, err := filepath.Glob(filepath.Join(directory, "*"+segmentSuffix))
	require.NoError(t, err)
	require.Len(t, files, 1)
	whole, err := os.ReadFile(files[0])
	require.NoError(t, err)
	size := recordHeader + len("topic") + 1
	synced := segmentHeader + 7*size
	require.Len(t, whole, synced+3*size)
	for cut := synced; cut <= len(whole); cut++ {
		for _, zeros := range []int{0, len(whole) - cut, 4096} {
			data := append(append([]byte{}, whole[:cut]...), make([]byte, zeros)...)
			require.NoError(t, os.WriteFile(files[0], data, 0o600))
			s := openSpool(t, Config{Directory: directory})
			require.Equal(t, numbers(0, 7+(cut-synced)/size), s.drain(false), "cut at %d, %d zeros", cut, zeros)
			require.NoError(t, s.Close())
		}
	}
}

// TestSpoolOnFullDisk fills a real file system. What was safe stays, what comes meanwhile waits in memory, and is written when there is
// room.
func TestSpoolOnFullDisk(t *testing.T) {
	directory := t.TempDir()
	if err := syscall.Mount("tmpfs", directory, "tmpfs", 0, "size=400k"); err != nil {
		t.Skipf("cannot mount a small file system: %v", err)
	}
	t.Cleanup(func() { syscall.Unmount(directory, syscall.MNT_DETACH) })
	config := Config{Directory: filepath.Join(directory, "spool"), MaxBytes: 1 << 20, Commit: time.Millisecond}
	s := openSpool(t, config)
	const before, during = 100, 500
	for i := range before {
		s.add(fmt.Sprintf("%d %01000d", i, 0))
	}
	require.NoError(t, s.Sync())
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
	require.ErrorIs(t, s.Sync(), syscall.ENOSPC)
	require.ErrorIs(t, s.failureNow(), syscall.ENOSPC)
	require.Len(t, s.drain(false), before+during)
	assert.Equal(t, ledger.Account{Offered: before + during, Queued: before + during}, s.balance(t))
	for i := range uint64(10) {
		s.Acknowledge(i + 1)
	}
	require.NoError(t, os.Remove(hog))
	require.NoError(t, s.Sync())
	require.NoError(t, s.failureNow())
	require.NoError(t, s.Close())
	s = openSpool(t, config)
	defer s.Close() // before the file system goes
	for i, payload := range s.drain(true) {
		require.True(t, strings.HasPrefix(payload, fmt.Sprintf("%d ", 10+i)), payload[:10])
	}
	assert.Equal(t, ledger.Account{Offered: before + during - 10, Delivered: before + during - 10}, s.balance(t))
}

// TestSpoolMemoryCap holds more than memory may while nothing can be written.
func TestSpoolMemoryCap(t *testing.T) {
	s := openSpool(t, Config{MaxMemory: 10 * int64(recordHeader+len("topic")+2)})
	for i := range 90 {
		s.add(strconv.Itoa(10 + i))
	}
	assert.Equal(t, numbers(90, 100), s.drain(false))
	assert.Equal(t, ledger.Account{Offered: 90, Dropped: 80, Queued: 10}, s.balance(t))
}

// TestSpoolFileVanishes removes and cuts files under an open spool.
func TestSpoolFileVanishes(t *testing.T) {
	directory := t.TempDir()
	s := openSpool(t, Config{Directory: directory, MaxBytes: 1 << 20})
	for i := range 400 {
		s.add(fmt.Sprintf("%0400d", i))
		if i%50 == 49 {
			require.NoError(t, s.Sync())
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
	s := openSpool(t, Config{Directory: t.TempDir(), Commit: time.Millisecond, MaxBytes: 1 << 20})
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
	deadline := time.Now().Add(mqtttest.Patience)
	for got < producers*each {
		e, ok := s.Next(cursor, nil)
		if !ok {
			require.True(t, time.Now().Before(deadline), "%d of %d events", got, producers*each)
			time.Sleep(100 * time.Microsecond)
			continue
		}
		var p, i int
		_, err := fmt.Sscanf(string(e.Payload), "%d %d", &p, &i)
		require.NoError(t, err)
		require.Equal(t, last[p]+1, i)
		last[p], cursor = i, e.Number
		got++
		s.Acknowledge(e.Number)
	}
	group.Wait()
	assert.Equal(t, ledger.Account{Offered: producers * each, Delivered: producers * each}, s.balance(t))
}

// BenchmarkSpoolOffer shows what the frame loop pays for an event.
func BenchmarkSpoolOffer(b *testing.B) {
	s := openSpool(b, Config{Directory: b.TempDir(), MaxMessages: 10_000})
	payload := make([]byte, 250)
	b.ReportAllocs()
	for b.Loop() {
		s.Offer("edge-infer/gate/cam0/events", func(buf []byte, _ uint64) []byte { return append(buf, payload...) })
	}
}

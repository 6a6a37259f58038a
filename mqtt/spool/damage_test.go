package spool

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/mqtt/ledger"
	"github.com/edge-infer/edge-infer/mqtt/mqtttest"
)

// written makes a spool of ten events in one file and returns that, as it is on disk.
func written(t testing.TB, directory string) (path string, whole []byte) {
	t.Helper()
	s := openSpool(t, Config{Directory: directory})
	for i := range 10 {
		s.add(strconv.Itoa(i))
	}
	require.NoError(t, s.Close())
	files, err := filepath.Glob(filepath.Join(directory, "*"+segmentSuffix))
	require.NoError(t, err)
	require.Len(t, files, 1)
	whole, err = os.ReadFile(files[0])
	require.NoError(t, err)
	return files[0], whole
}

const recordSize = recordHeader + len("topic") + 1

// TestOneBitCostsOneEvent flips a bit of every byte of a file in turn.
func TestOneBitCostsOneEvent(t *testing.T) {
	directory := t.TempDir()
	path, whole := written(t, directory)
	require.Len(t, whole, segmentHeader+10*recordSize)
	position, err := os.ReadFile(filepath.Join(directory, positionName))
	require.NoError(t, err)
	random := rand.New(rand.NewPCG(3, 4))
	for at := range whole {
		bit := 8*at + random.IntN(8)
		require.NoError(t, os.RemoveAll(directory))
		require.NoError(t, os.Mkdir(directory, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(directory, positionName), position, 0o600))
		data := slices.Clone(whole)
		data[bit/8] ^= 1 << (bit % 8)
		require.NoError(t, os.WriteFile(path, data, 0o600))
		want := numbers(0, 10)
		lost := uint64(0)
		if hit := bit/8 - segmentHeader; hit >= 0 {
			want = slices.Delete(want, hit/recordSize, hit/recordSize+1)
			lost = 1
		}
		s := openSpool(t, Config{Directory: directory})
		require.Equal(t, want, s.drain(false), "bit %d", bit)
		require.Equal(t, lost, s.Stats().Lost, "bit %d", bit)
		require.Equal(t, ledger.Account{Offered: 10, Dropped: lost, Queued: 10 - lost}, s.balance(t))
		if at%8 != 0 {
			require.NoError(t, s.Close())
			continue
		}
		s.add("10")
		require.NoError(t, s.Close())
		s = openSpool(t, Config{Directory: directory})
		require.Equal(t, append(want, "10"), s.drain(true), "bit %d, opened again", bit)
		require.Zero(t, s.Stats().Lost, "what is lost is counted once")
		require.NoError(t, s.Close())
	}
}

// TestEveryFileOfManyMayBeDamaged has damage in the middle, at the seam and at the end of several files.
func TestEveryFileOfManyMayBeDamaged(t *testing.T) {
	directory := t.TempDir()
	config := Config{Directory: directory, MaxBytes: 1 << 20} // 64 KiB files
	s := openSpool(t, config)
	for i := range 600 {
		s.add(strconv.Itoa(i) + " " + strings.Repeat("x", 500))
		if i%50 == 0 {
			require.NoError(t, s.Sync())
		}
	}
	require.NoError(t, s.Close())
	files, err := filepath.Glob(filepath.Join(directory, "*"+segmentSuffix))
	require.NoError(t, err)
	require.Greater(t, len(files), 3)
	for _, path := range files {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, at := range []int{0, segmentHeader + 1, len(data) / 2, len(data) - 1} { // the mark, the first record, one in the middle, the last
			data[at] ^= 0x10
		}
		require.NoError(t, os.WriteFile(path, data, 0o600))
	}
	log := &mqtttest.Journal{}
	s = &Spool{Config: config, Logger: log.Logger(), Notify: func() {}}
	require.NoError(t, s.Open())
	t.Cleanup(func() { s.Close() })
	assert.Equal(t, uint64(3*len(files)), s.Stats().Lost)
	assert.Len(t, s.drain(true), 600-3*len(files))
	assert.Contains(t, log.String(), "event spool file was damaged: what is whole is kept, the rest moved aside")
	aside, err := filepath.Glob(filepath.Join(directory, "*"+damagedSuffix+"*"))
	require.NoError(t, err)
	assert.Len(t, aside, len(files), "one does not take another's place")
	for _, path := range aside {
		info, err := os.Stat(path)
		require.NoError(t, err)
		assert.Greater(t, info.Size(), int64(3*500), "every damaged record is in it")
	}
	assert.Contains(t, log.String(), `msg="event spool has lost events to damage"`)
	s.balance(t)
}

func TestDamagedPartsAreKeptWithinBounds(t *testing.T) {
	directory := t.TempDir()
	path, whole := written(t, directory)
	damage := func(record int) {
		t.Helper()
		data := slices.Clone(whole)
		data[segmentHeader+record*recordSize+recordHeader] ^= 0xff
		require.NoError(t, os.WriteFile(path, data, 0o600))
		require.NoError(t, openSpool(t, Config{Directory: directory}).Close())
	}
	damage(3)
	damage(5)
	kept, err := filepath.Glob(filepath.Join(directory, "*"+damagedSuffix))
	require.NoError(t, err)
	require.Len(t, kept, 2, "one does not take the place of another")
	first, err := os.ReadFile(kept[0])
	require.NoError(t, err)
	assert.True(t, bytes.HasSuffix(first, []byte{'3'}))
	assert.Len(t, first, recordSize)
	second, err := os.ReadFile(kept[1])
	require.NoError(t, err)
	assert.True(t, bytes.HasSuffix(second, []byte{'5'}))
	for range 2 * damagedFiles {
		damage(7)
	}
	kept, err = filepath.Glob(filepath.Join(directory, "*"+damagedSuffix))
	require.NoError(t, err)
	assert.Len(t, kept, damagedFiles)
	for range 5 {
		require.NoError(t, saveDamaged(path, make([]byte, damagedBytes/3)))
	}
	kept, err = filepath.Glob(filepath.Join(directory, "*"+damagedSuffix))
	require.NoError(t, err)
	assert.Len(t, kept, 3, "8 MiB at most")
}

// TestADamagedFileThatCannotBeWrittenIsRead has a directory take the place where the damaged part should go.
func TestADamagedFileThatCannotBeWrittenIsRead(t *testing.T) {
	directory := t.TempDir()
	path, whole := written(t, directory)
	data := slices.Clone(whole)
	data[segmentHeader+3*recordSize+recordHeader] ^= 0xff
	require.NoError(t, os.WriteFile(path, data, 0o600))
	s, c, err := openSegment(path, 0)
	require.NoError(t, err)
	require.NoError(t, s.file.Close())
	require.False(t, s.sealed)
	require.Len(t, c.records, 9)

	require.NoError(t, os.WriteFile(path, data, 0o600))
	// Removing the oldest of the kept parts fails when it is a directory with something in it.
	require.NoError(t, os.MkdirAll(filepath.Join(directory, "000000000"+damagedSuffix, "something"), 0o700))
	for i := range damagedFiles {
		require.NoError(t, os.WriteFile(filepath.Join(directory, fmt.Sprintf("%09d.x%s", i+1, damagedSuffix)), nil, 0o600))
	}
	s, c, err = openSegment(path, 0)
	require.NoError(t, err)
	require.True(t, s.sealed)
	require.NoError(t, s.file.Close())
	require.Len(t, c.records, 9)
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, data, after, "nothing is thrown away that is not kept elsewhere")
	spool := openSpool(t, Config{Directory: directory})
	assert.Equal(t, slices.Delete(numbers(0, 10), 3, 4), spool.drain(false))
	spool.add("10")
	require.NoError(t, spool.Close())
	spool = openSpool(t, Config{Directory: directory})
	assert.Equal(t, append(slices.Delete(numbers(0, 10), 3, 4), "10"), spool.drain(true))
}

func TestALostPositionCostsRepeats(t *testing.T) {
	directory := t.TempDir()
	written(t, directory)
	s := openSpool(t, Config{Directory: directory})
	s.drain(true)
	s.add("10")
	require.NoError(t, s.Close())
	require.NoError(t, os.WriteFile(filepath.Join(directory, positionName), []byte("nonsense"), 0o600))
	s = openSpool(t, Config{Directory: directory})
	assert.Contains(t, s.drain(true), "10")
	assert.Zero(t, s.Stats().Lost)
}

// FuzzScan makes sure that reading a file finds records of rising numbers where they are, and that no byte is both good and damaged.
func FuzzScan(f *testing.F) {
	record := func(number uint64) []byte {
		return appendRecord(nil, number, 1, "topic", func(buf []byte) []byte { return append(buf, "payload"...) })
	}
	f.Add(header(0), uint16(0), byte(0))
	f.Add(append(header(0), record(1)...), uint16(3), byte(1))
	f.Add(append(append(header(0), record(2)...), record(1)...), uint16(9), byte(0))
	f.Add(append(header(0), record(1)[:20]...), uint16(0), byte(0))
	f.Add([]byte("something else entirely, longer than a header"), uint16(0), byte(0))
	f.Fuzz(func(t *testing.T, data []byte, at uint16, flip byte) {
		// A good file, with the fuzzer's bytes put into it and a bit changed.
		whole := header(0)
		for n := range uint64(4) {
			whole = append(whole, record(n+1)...)
			if n == 1 {
				whole = append(whole, data...)
			}
		}
		whole[int(at)%len(whole)] ^= flip
		for _, file := range [][]byte{data, whole} {
			c := scan(file, 0)
			covered := make([]bool, len(file))
			last := uint64(0)
			for _, r := range c.records {
				require.Greater(t, r.Number, last)
				require.Equal(t, r.Buffer, file[r.offset:int(r.offset)+len(r.Buffer)])
				last = r.Number
				for i := range r.Buffer {
					covered[int(r.offset)+i] = true
				}
				require.LessOrEqual(t, int(r.offset)+len(r.Buffer), c.end)
			}
			for _, part := range c.damaged {
				for i := part[0]; i < part[1]; i++ {
					require.False(t, covered[i])
				}
			}
			if len(data) == 0 && len(file) > 0 {
				require.GreaterOrEqual(t, len(c.records), 3)
			}
		}
	})
}

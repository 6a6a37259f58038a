package spool

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/edge-infer/edge-infer/engine/atomicfile"
)

// A segment is one file of the spool: a header, then records with rising numbers. The header is a mark, the number of the last record of
// the file before and a checksum. Records are only ever appended, in whole batches that are synced before they count; a file is removed
// when none of its records is queued any more.
type segment struct {
	path   string
	file   *os.File
	last   uint64 // number of the last record
	size   int64  // bytes that are known good
	sealed bool   // nothing is appended to it
}

const (
	segmentMark   = "edgespl2"
	segmentHeader = len(segmentMark) + 8 + 4
	oldMark       = "edgespl1" // records of wall-clock times
	segmentSuffix = ".events"
	damagedSuffix = ".damaged"
)

// header is what a file begins with; before is the number of the last record of the file before.
func header(before uint64) []byte {
	buf := binary.LittleEndian.AppendUint64([]byte(segmentMark), before)
	return binary.LittleEndian.AppendUint32(buf, crc32c(buf))
}

// createSegment makes a new file whose name is the number of its first record; before is the last one of the file before.
func createSegment(directory string, first, before uint64) (*segment, error) {
	path := filepath.Join(directory, fmt.Sprintf("%016x%s", first, segmentSuffix))
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	if _, err = file.Write(header(before)); err == nil {
		err = atomicfile.SyncDir(directory)
	}
	if err != nil {
		file.Close()
		os.Remove(path)
		return nil, err
	}
	return &segment{path: path, file: file, size: int64(segmentHeader)}, nil
}

// firstNumber is what the name of a segment's file says; 0 when it says nothing.
func firstNumber(path string) uint64 {
	number, err := strconv.ParseUint(strings.TrimSuffix(filepath.Base(path), segmentSuffix), 16, 64)
	if err != nil {
		return 0
	}
	return number
}

// append writes records behind what is good and syncs them. They count when the caller has raised size and last. On an error the file is
// cut back.
func (s *segment) append(records []byte) error {
	_, err := s.file.WriteAt(records, s.size)
	if err == nil {
		err = s.file.Sync()
	}
	if err != nil {
		s.file.Truncate(s.size)
	}
	return err
}

func (s *segment) remove() {
	s.file.Close()
	os.Remove(s.path)
}

// scanResult are the records of a segment's bytes, and the parts between them that are none.
type scanResult struct {
	before  uint64 // number of the last record of the file before, 0 when it is not known
	records []scannedRecord
	damaged [][2]int // from, to
	tail    bool     // the last damaged part is at the end
	end     int      // behind the last record
}

// scannedRecord is a record and where it begins; afterDamage says that there is a damaged part between the record before and this one.
type scannedRecord struct {
	Event
	offset      int64
	afterDamage bool
}

// scan finds every record of data whose checksum is right and whose number is higher than that of the one before. Reading goes on behind a
// damaged part at the next record, wherever that begins. What a power cut leaves of the last batch is no damage.
func scan(data []byte, after uint64) scanResult {
	var c scanResult
	at, bad := 0, -1
	old := bytes.HasPrefix(data, []byte(oldMark))
	if old {
		at = len(oldMark)
	} else if len(data) >= segmentHeader {
		if before := binary.LittleEndian.Uint64(data[len(segmentMark):]); bytes.HasPrefix(data, header(before)) {
			at, c.before = segmentHeader, before
		}
	}
	c.end = at
	for at < len(data) {
		e, err := readRecord(data[at:])
		if err != nil || e.Number <= after {
			if bad < 0 {
				bad = at
			}
			at++
			continue
		}
		if bad >= 0 {
			c.damaged = append(c.damaged, [2]int{bad, at})
		}
		if old {
			e.at = ageUnknown
		}
		c.records = append(c.records, scannedRecord{e, int64(at), bad >= 0})
		after, bad = e.Number, -1
		at += len(e.Buffer)
		c.end = at
	}
	if bad >= 0 && !tornRecord(data[bad:]) {
		c.damaged = append(c.damaged, [2]int{bad, len(data)})
		c.tail = true
	}
	return c
}

// tornRecord reports whether the rest of a file is what a power cut leaves of a batch: nothing, zeros, or a record longer than the rest.
func tornRecord(rest []byte) bool {
	if len(rest) < recordHeader {
		return true
	}
	if size := binary.LittleEndian.Uint32(rest); size > recordHeader && size <= RecordLimit && int(size) > len(rest) {
		return true
	}
	for _, b := range rest {
		if b != 0 {
			return false
		}
	}
	return true
}

// openSegment reads a file of an earlier run. Damaged parts are moved aside; where that fails the file stays as it is, to be read and not
// written to. The segment is nil, and the file gone, when there is no record in it.
func openSegment(path string, after uint64) (s *segment, c scanResult, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, c, err
	}
	c = scan(data, after)
	sealed := false
	if len(c.damaged) > 0 {
		sealed = c.quarantine(path, data) != nil
	}
	if len(c.records) == 0 && !sealed {
		return nil, c, os.Remove(path)
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0o600)
	if err != nil {
		return nil, c, err
	}
	if !sealed {
		err = file.Truncate(int64(c.end))
	}
	if err != nil {
		file.Close()
		return nil, c, err
	}
	s = &segment{path: path, file: file, last: after, size: int64(c.end), sealed: sealed}
	if n := len(c.records); n > 0 {
		s.last = c.records[n-1].Number
	}
	return s, c, nil
}

// quarantine keeps the damaged parts in a file of their own and writes the segment anew without them, changing the records' places.
func (c *scanResult) quarantine(path string, data []byte) error {
	var parts []byte
	for _, part := range c.damaged {
		parts = append(parts, data[part[0]:part[1]]...)
	}
	if err := saveDamaged(path, parts); err != nil {
		return err
	}
	whole := header(c.before)
	places := make([]int64, len(c.records))
	for i := range c.records {
		places[i] = int64(len(whole))
		e := &c.records[i].Event
		whole = appendRecord(whole, e.Number, e.at, e.Topic, func(buf []byte) []byte { return append(buf, e.Payload...) })
	}
	if err := atomicfile.Write(path, whole, 0o600); err != nil {
		return err
	}
	for i := range c.records {
		c.records[i].offset = places[i]
	}
	c.end = len(whole)
	return nil
}

// Bounds of what is kept of damaged parts, for whoever wants to look at them.
const (
	damagedFiles = 16
	damagedBytes = 8 << 20
)

// saveDamaged writes what could not be read to a file of its own beside the segment. The oldest such files make room for new ones.
func saveDamaged(path string, data []byte) error {
	data = data[:min(len(data), damagedBytes)]
	directory := filepath.Dir(path)
	kept, err := filepath.Glob(filepath.Join(directory, "*"+damagedSuffix))
	if err != nil {
		return err
	}
	slices.Sort(kept) // their names begin with a number that rises with time
	next := 0
	if n := len(kept); n > 0 {
		number, _, _ := strings.Cut(filepath.Base(kept[n-1]), ".")
		if next, err = strconv.Atoi(number); err == nil {
			next++
		}
	}
	total := int64(len(data))
	for i := len(kept) - 1; i >= 0; i-- {
		info, err := os.Stat(kept[i])
		if err != nil {
			return err
		}
		if total += info.Size(); total > damagedBytes || len(kept)-i >= damagedFiles {
			if err := os.Remove(kept[i]); err != nil {
				return err
			}
		}
	}
	return os.WriteFile(filepath.Join(directory, fmt.Sprintf("%09d.%s%s", next, filepath.Base(path), damagedSuffix)), data, 0o600)
}

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

	"github.com/edge-infer/edge-infer/internal/atomicfile"
)

// A segment is one file of the spool: a header, then records with rising numbers. The header is a magic, the number of the previous file's
// last record and a checksum. Records are only ever appended, in whole batches that are synced before they count; a file is removed when
// none of its records is queued any more.
type segment struct {
	path   string
	file   *os.File
	last   uint64 // number of the last record
	size   int64  // valid bytes
	sealed bool   // read only
}

const (
	segmentMark   = "edgespl2"
	segmentHeader = len(segmentMark) + 8 + 4
	oldMark       = "edgespl1" // previous format with wall-clock times
	segmentSuffix = ".events"
	damagedSuffix = ".damaged"
)

// header returns a segment's header; before is the number of the previous file's last record.
func header(before uint64) []byte {
	buf := binary.LittleEndian.AppendUint64([]byte(segmentMark), before)
	return binary.LittleEndian.AppendUint32(buf, crc32c(buf))
}

// createSegment creates a file named by the number of its first record; before is the number of the previous file's last record.
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

// firstNumber returns the number in a segment's file name, or 0.
func firstNumber(path string) uint64 {
	number, err := strconv.ParseUint(strings.TrimSuffix(filepath.Base(path), segmentSuffix), 16, 64)
	if err != nil {
		return 0
	}
	return number
}

// append writes records after the valid bytes and syncs them. The caller then updates size and last. On an error the file is truncated.
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

// scanResult holds the valid records of a segment and its damaged parts.
type scanResult struct {
	before  uint64 // number of the previous file's last record, 0 if unknown
	records []scannedRecord
	damaged [][2]int // from, to
	tail    bool     // the last damaged part is at the end
	end     int      // behind the last record
}

// scannedRecord is a record and its offset. afterDamage is set if a damaged part precedes it.
type scannedRecord struct {
	Event
	offset      int64
	afterDamage bool
}

// scan returns every record with a valid checksum and a rising number. After a damaged part it continues at the next valid record. The
// remainder of a batch torn by a power cut does not count as damage.
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

// tornRecord reports whether the rest of a file is a batch torn by a power cut: nothing, zeros, or a record longer than the rest.
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

// openSegment opens a file of an earlier process. Damaged parts are moved to a file of their own; if that fails, the segment is sealed. A
// file without records is removed, and the segment is nil.
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

// Limits of the saved damaged parts, which are kept for analysis.
const (
	damagedFiles = 16
	damagedBytes = 8 << 20
)

// saveDamaged writes damaged parts to a file beside the segment. The oldest such files are removed.
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

package mqtt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// A segment is one file of the spool: a mark, then records with rising numbers. Records are only ever appended, in whole batches that are
// synced before they count; a file is removed when none of its records is queued any more.
type segment struct {
	path string
	file *os.File
	last uint64 // number of the last record
	size int64  // bytes that are known good
}

const (
	segmentMark   = "edgespl1"
	segmentSuffix = ".events"
	damagedSuffix = ".damaged"
)

// createSegment makes a new file whose name is the number of its first record.
func createSegment(directory string, first uint64) (*segment, error) {
	path := filepath.Join(directory, fmt.Sprintf("%016x%s", first, segmentSuffix))
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	if _, err = file.WriteString(segmentMark); err == nil {
		err = syncDirectory(directory)
	}
	if err != nil {
		file.Close()
		os.Remove(path)
		return nil, err
	}
	return &segment{path: path, file: file, size: int64(len(segmentMark))}, nil
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

// openSegment reads a file of an earlier run and calls each for every good record. What follows the last good record is cut off; when it is
// more than a record that was being written, it is kept beside the file for inspection and damaged is true.
func openSegment(path string, after uint64, each func(event, int64)) (s *segment, damaged bool, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, false, err
	}
	good := int64(0)
	last := after
	if len(data) >= len(segmentMark) && string(data[:len(segmentMark)]) == segmentMark {
		good = int64(len(segmentMark))
		for good < int64(len(data)) {
			e, err := readEvent(data[good:])
			if err != nil || e.number <= last {
				break
			}
			each(e, good)
			last = e.number
			good += int64(len(e.buffer))
		}
	}
	if rest := data[good:]; !tornRecord(rest) {
		damaged = true
		if err := keepDamaged(path+damagedSuffix, rest); err != nil {
			return nil, true, err
		}
	}
	if good <= int64(len(segmentMark)) {
		return nil, damaged, os.Remove(path)
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0o600)
	if err != nil {
		return nil, damaged, err
	}
	if err := file.Truncate(good); err != nil {
		file.Close()
		return nil, damaged, err
	}
	return &segment{path: path, file: file, last: last, size: good}, damaged, nil
}

// tornRecord reports whether the rest of a file is what a power cut leaves of a batch: nothing, zeros, or a record longer than the rest.
func tornRecord(rest []byte) bool {
	if len(rest) < recordHeader {
		return true
	}
	if size := binary.LittleEndian.Uint32(rest); size > recordHeader && size <= recordLimit && int(size) > len(rest) {
		return true
	}
	for _, b := range rest {
		if b != 0 {
			return false
		}
	}
	return true
}

// keepDamaged writes what could not be read to a file of its own and removes older such files, so that they never fill the disk.
func keepDamaged(path string, data []byte) error {
	old, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*"+damagedSuffix))
	if err != nil {
		return err
	}
	for _, name := range old {
		os.Remove(name)
	}
	return os.WriteFile(path, data, 0o600)
}

func syncDirectory(path string) error {
	directory, err := os.Open(path)
	if err != nil {
		return err
	}
	defer directory.Close()
	return directory.Sync()
}

// position is the file that remembers the last event that is done with: delivered, or dropped. Losing it costs repeats, not events.
const positionName = "done"

func readPosition(directory string) uint64 {
	data, err := os.ReadFile(filepath.Join(directory, positionName))
	if err != nil || len(data) != 12 || crc32c(data[:8]) != binary.LittleEndian.Uint32(data[8:]) {
		return 0
	}
	return binary.LittleEndian.Uint64(data)
}

func writePosition(file io.WriterAt, number uint64) error {
	data := binary.LittleEndian.AppendUint64(nil, number)
	data = binary.LittleEndian.AppendUint32(data, crc32c(data))
	_, err := file.WriteAt(data, 0)
	return err
}

var errSpoolBusy = errors.New("in use by another process (give each instance its own directory)")

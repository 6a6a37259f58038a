package mqtt

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
)

// A record is one event, in memory as on disk: length of the whole record, CRC-32C of everything after the checksum, number, time in Unix
// milliseconds, length of the topic, topic, payload. Integers are little endian.
const (
	recordHeader = 4 + 4 + 8 + 8 + 2
	recordLimit  = 1 << 20
)

var errRecord = errors.New("damaged record")

func crc32c(data []byte) uint32 { return crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli)) }

// appendRecord appends a record whose payload encode appends.
func appendRecord(buf []byte, number uint64, at int64, topic string, encode func([]byte) []byte) []byte {
	start := len(buf)
	buf = append(buf, make([]byte, 8)...)
	buf = binary.LittleEndian.AppendUint64(buf, number)
	buf = binary.LittleEndian.AppendUint64(buf, uint64(at))
	buf = binary.LittleEndian.AppendUint16(buf, uint16(len(topic)))
	buf = append(buf, topic...)
	buf = encode(buf)
	record := buf[start:]
	binary.LittleEndian.PutUint32(record, uint32(len(record)))
	binary.LittleEndian.PutUint32(record[4:], crc32c(record[8:]))
	return buf
}

// event is a record that was read.
type event struct {
	buffer  []byte // holds all of it
	number  uint64
	at      int64
	topic   string
	payload []byte
}

// readEvent reads the record at the start of data.
func readEvent(data []byte) (event, error) {
	if len(data) < recordHeader {
		return event{}, errRecord
	}
	size := binary.LittleEndian.Uint32(data)
	if size < recordHeader || size > recordLimit || int(size) > len(data) {
		return event{}, errRecord
	}
	data = data[:size]
	if crc32c(data[8:]) != binary.LittleEndian.Uint32(data[4:]) {
		return event{}, errRecord
	}
	body := recordHeader + int(binary.LittleEndian.Uint16(data[24:]))
	if body > len(data) {
		return event{}, errRecord
	}
	return event{
		buffer:  data,
		number:  binary.LittleEndian.Uint64(data[8:]),
		at:      int64(binary.LittleEndian.Uint64(data[16:])),
		topic:   string(data[recordHeader:body]),
		payload: data[body:],
	}, nil
}

// markReplayed adds "replayed":true to a payload that is a JSON object.
func (e *event) markReplayed() {
	if n := len(e.payload); n > 2 && e.payload[n-1] == '}' {
		at := len(e.buffer) - n
		e.buffer = append(e.buffer[:len(e.buffer)-1], `,"replayed":true}`...)
		e.payload = e.buffer[at:]
	}
}

// entry says where a queued record is.
type entry struct {
	number uint64
	at     int64 // Unix milliseconds
	offset uint32
	size   uint32
}

// queue is a first-in first-out list of entries.
type queue struct {
	entries []entry
	head    int
	bytes   int64
}

func (q *queue) len() int      { return len(q.entries) - q.head }
func (q *queue) live() []entry { return q.entries[q.head:] }

func (q *queue) push(e entry) {
	if q.head > 1024 && q.head > len(q.entries)/2 {
		n := copy(q.entries, q.entries[q.head:])
		q.entries, q.head = q.entries[:n], 0
	}
	q.entries = append(q.entries, e)
	q.bytes += int64(e.size)
}

func (q *queue) pop() entry {
	e := q.entries[q.head]
	q.head++
	q.bytes -= int64(e.size)
	if q.head == len(q.entries) {
		q.entries, q.head = q.entries[:0], 0
	}
	return e
}

// after returns the first entry with a greater number.
func (q *queue) after(number uint64) (entry, bool) {
	live := q.live()
	low, high := 0, len(live)
	for low < high {
		middle := (low + high) / 2
		if live[middle].number > number {
			high = middle
		} else {
			low = middle + 1
		}
	}
	if low == len(live) {
		return entry{}, false
	}
	return live[low], true
}

// remove takes one entry out of the middle.
func (q *queue) remove(number uint64) bool {
	for i, e := range q.live() {
		if e.number == number {
			q.bytes -= int64(e.size)
			at := q.head + i
			q.entries = append(q.entries[:at], q.entries[at+1:]...)
			return true
		}
	}
	return false
}

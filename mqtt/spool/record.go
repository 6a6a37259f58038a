package spool

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
)

// A record is one event, in memory as on disk: length of the whole record, CRC-32C of everything after the checksum, number, time by the
// queue's own clock in milliseconds, length of the topic, topic, payload. Integers are little endian.
const (
	recordHeader = 4 + 4 + 8 + 8 + 2
	// RecordLimit is the maximum size of a record in bytes.
	RecordLimit = 1 << 20
)

var errRecord = errors.New("damaged record")

func crc32c(data []byte) uint32 { return crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli)) }

// appendRecord appends a record; encode appends its payload.
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

// Event is a decoded record.
type Event struct {
	Buffer  []byte // the whole record
	Number  uint64
	Topic   string
	Payload []byte
	at      int64
}

// readRecord reads the record at the start of data.
func readRecord(data []byte) (Event, error) {
	if len(data) < recordHeader {
		return Event{}, errRecord
	}
	size := binary.LittleEndian.Uint32(data)
	if size < recordHeader || size > RecordLimit || int(size) > len(data) {
		return Event{}, errRecord
	}
	data = data[:size]
	if crc32c(data[8:]) != binary.LittleEndian.Uint32(data[4:]) {
		return Event{}, errRecord
	}
	body := recordHeader + int(binary.LittleEndian.Uint16(data[24:]))
	if body > len(data) {
		return Event{}, errRecord
	}
	return Event{
		Buffer:  data,
		Number:  binary.LittleEndian.Uint64(data[8:]),
		Topic:   string(data[recordHeader:body]),
		Payload: data[body:],
		at:      int64(binary.LittleEndian.Uint64(data[16:])),
	}, nil
}

package spool

import (
	"crypto/sha256"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// clock measures the age of events by the time that the machine has run since they were queued: no setting of the machine's clock changes
// it, and the time that the machine was off does not count. It goes on over restarts of the process, and over reboots from where it was
// noted last.
type clock struct {
	boot    [16]byte             // of this start of the machine
	running func() time.Duration // since the machine's start, suspended or not
	offset  time.Duration        // what is added to it
}

// ageUnknown stands for the time of a record whose age nobody knows.
const ageUnknown = -1

// machineClock is the clock of this machine, not yet set.
func machineClock() clock {
	c := clock{running: sinceBoot}
	if id, err := os.ReadFile("/proc/sys/kernel/random/boot_id"); err == nil {
		sum := sha256.Sum256(id)
		copy(c.boot[:], sum[:])
	}
	return c
}

func sinceBoot() time.Duration {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &now) // every kernel since 2.6.39 has it
	return time.Duration(now.Nano())
}

// now is the time of the clock in milliseconds.
func (c *clock) now() int64 { return (c.running() + c.offset).Milliseconds() }

// restore sets the clock by what was noted, and to at least a time that it is known to have shown.
func (c *clock) restore(p *position, least int64) {
	running := c.running()
	at := time.Duration(p.clock) * time.Millisecond
	if noted := time.Duration(p.running) * time.Millisecond; p.boot == c.boot && running > noted {
		at += running - noted
	}
	c.offset = max(at, time.Duration(least)*time.Millisecond) - running
}

// position is the file that remembers how far the events are done with. Losing it costs repeats, not events.
type position struct {
	done    uint64   // the last event that is done with: delivered, or dropped
	stored  uint64   // the last event that is in a file
	clock   int64    // at the time of writing
	running int64    // milliseconds since the machine's start, likewise
	boot    [16]byte // which start
}

const positionName = "done"

func readPosition(directory string) position {
	data, err := os.ReadFile(filepath.Join(directory, positionName))
	n := len(data) - 4
	if err != nil || n < 8 || crc32c(data[:n]) != binary.LittleEndian.Uint32(data[n:]) {
		return position{}
	}
	p := position{done: binary.LittleEndian.Uint64(data)}
	if n == 48 {
		p.stored = binary.LittleEndian.Uint64(data[8:])
		p.clock = int64(binary.LittleEndian.Uint64(data[16:]))
		p.running = int64(binary.LittleEndian.Uint64(data[24:]))
		copy(p.boot[:], data[32:])
	}
	return p
}

func (p *position) write(file io.WriterAt) error {
	data := binary.LittleEndian.AppendUint64(nil, p.done)
	data = binary.LittleEndian.AppendUint64(data, p.stored)
	data = binary.LittleEndian.AppendUint64(data, uint64(p.clock))
	data = binary.LittleEndian.AppendUint64(data, uint64(p.running))
	data = append(data, p.boot[:]...)
	_, err := file.WriteAt(binary.LittleEndian.AppendUint32(data, crc32c(data)), 0)
	return err
}

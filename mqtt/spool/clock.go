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

// clock measures the age of events in running time of the machine, so that setting the wall clock has no effect. It continues across
// restarts of the process and, from the last saved value, across reboots.
type clock struct {
	boot    [16]byte             // hash of the boot id
	running func() time.Duration // time since boot, suspend included
	offset  time.Duration        // added to running
}

// ageUnknown is the time of a record of unknown age.
const ageUnknown = -1

// machineClock returns this machine's clock, not yet restored.
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

// now returns the time of the clock in milliseconds.
func (c *clock) now() int64 { return (c.running() + c.offset).Milliseconds() }

// restore sets the clock from a saved position, to at least the time least.
func (c *clock) restore(p *position, least int64) {
	running := c.running()
	at := time.Duration(p.clock) * time.Millisecond
	if noted := time.Duration(p.running) * time.Millisecond; p.boot == c.boot && running > noted {
		at += running - noted
	}
	c.offset = max(at, time.Duration(least)*time.Millisecond) - running
}

// position is the content of the position file. Losing it causes repeated events, not lost ones.
type position struct {
	done    uint64   // last event that was delivered or dropped
	stored  uint64   // last event stored in a segment
	clock   int64    // at the time of writing
	running int64    // milliseconds since boot at the time of writing
	boot    [16]byte // hash of the boot id
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

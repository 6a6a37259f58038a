package main

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
)

// clockPatch is a function of the vDSO, the kernel's library in every process, and the code that replaces it: it makes the system call and
// adds seconds to the time of day. Other clocks stay as they are.
type clockPatch struct {
	name string
	code []byte
	at   int // of the seconds in code, 32 bits
}

// clockPatches are the functions that tell the time of day, for amd64.
var clockPatches = []clockPatch{
	// mov eax, 228; syscall; test edi, edi; jne to ret; add qword [rsi], 0; ret
	{"clock_gettime", []byte{0xb8, 0xe4, 0, 0, 0, 0x0f, 0x05, 0x85, 0xff, 0x75, 7, 0x48, 0x81, 0x06, 0, 0, 0, 0, 0xc3}, 14},
	// mov eax, 96; syscall; test rdi, rdi; je to ret; add qword [rdi], 0; ret
	{"gettimeofday", []byte{0xb8, 0x60, 0, 0, 0, 0x0f, 0x05, 0x48, 0x85, 0xff, 0x74, 7, 0x48, 0x81, 0x07, 0, 0, 0, 0, 0xc3}, 15},
	// mov eax, 201; syscall; add rax, 0; test rdi, rdi; je to ret; mov [rdi], rax; ret
	{"time", []byte{0xb8, 0xc9, 0, 0, 0, 0x0f, 0x05, 0x48, 0x05, 0, 0, 0, 0, 0x48, 0x85, 0xff, 0x74, 3, 0x48, 0x89, 0x07, 0xc3}, 9},
}

// errNoClock means that the clock of a process cannot be set on this machine.
var errNoClock = errors.New("only on amd64 and Linux's vDSO")

// setClock makes the time of day of one running process differ from this machine's by so many seconds.
func setClock(pid int, seconds int32) error {
	if runtime.GOARCH != "amd64" {
		return errNoClock
	}
	start, end, err := findVDSO(pid)
	if err != nil {
		return err
	}
	memory, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer memory.Close()
	image := make([]byte, end-start)
	if _, err := memory.ReadAt(image, start); err != nil {
		return err
	}
	library, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		return err
	}
	symbols, err := library.DynamicSymbols()
	if err != nil {
		return err
	}
	if err := stopOutside(pid, uint64(start), uint64(end)); err != nil {
		return err
	}
	defer func() { _ = syscall.Kill(pid, syscall.SIGCONT) }()
	for i := range clockPatches {
		patch := &clockPatches[i]
		for k := range symbols {
			if symbols[k].Name != patch.name {
				continue
			}
			if symbols[k].Size < uint64(len(patch.code)) {
				return errNoClock
			}
			code := bytes.Clone(patch.code)
			binary.LittleEndian.PutUint32(code[patch.at:], uint32(seconds))
			if _, err := memory.WriteAt(code, start+int64(symbols[k].Value)); err != nil {
				return err
			}
		}
	}
	return nil
}

// findVDSO returns the addresses of the vDSO of a process.
func findVDSO(pid int) (start, end int64, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, "[vdso]") {
			_, err = fmt.Sscanf(line, "%x-%x", &start, &end)
			return start, end, err
		}
	}
	return 0, 0, errNoClock
}

// stopOutside stops a process at a moment at which none of its threads is between two addresses.
func stopOutside(pid int, start, end uint64) error {
	for begun := time.Now(); time.Since(begun) < programtest.Patience; time.Sleep(time.Millisecond) {
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			return err
		}
		outside, err := stoppedOutside(pid, start, end)
		if err != nil || outside {
			return err
		}
		if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
			return err
		}
	}
	return errors.New("the process does not stop")
}

// stoppedOutside waits until all threads are stopped and reports whether none of them is between two addresses.
func stoppedOutside(pid int, start, end uint64) (bool, error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	if err != nil {
		return false, err
	}
	for _, thread := range threads {
		for {
			text, err := os.ReadFile(thread + "/stat")
			if err != nil {
				return false, nil //nolint:nilerr // the thread has ended, try again
			}
			state := text[bytes.LastIndexByte(text, ')')+2]
			if state == 'T' {
				break
			}
			time.Sleep(time.Millisecond / 10)
		}
		text, err := os.ReadFile(thread + "/syscall") // number, or -1, arguments, stack and program counter
		fields := strings.Fields(string(text))
		if err != nil || len(fields) == 0 {
			return false, err
		}
		at, err := strconv.ParseUint(strings.TrimPrefix(fields[len(fields)-1], "0x"), 16, 64)
		if err != nil || at >= start && at < end {
			return false, nil //nolint:nilerr // it is running
		}
	}
	return true, nil
}

// attackClock sets the daemon's time of day, back and forth by up to some days.
func (a *arena) attackClock() {
	const hour, day = 60 * 60, 24 * 60 * 60
	a.setClock(int32(choose(a, -day, day, -hour, hour, -1, 1, 25*hour, -3*day, 3*day, 0)))
	time.Sleep(attackHold)
}

// setClock sets the daemon's clock and requires that its page goes by it.
func (a *arena) setClock(seconds int32) {
	err := setClock(a.gate.Command.Process.Pid, seconds)
	if errors.Is(err, errNoClock) {
		a.t.Logf("clock jumps: not tried: %v", err)
		return
	}
	require.NoError(a.t, err)
	a.clock = seconds
	require.Eventually(a.t, func() bool {
		response, err := programtest.Visitor(a.t).Get("http://" + a.gate.address + "/healthz")
		if err != nil {
			return false
		}
		defer response.Body.Close()
		shown, err := http.ParseTime(response.Header.Get("Date"))
		return err == nil && shown.Sub(time.Now().Add(time.Duration(seconds)*time.Second)).Abs() < time.Minute/2
	}, programtest.Patience, 10*time.Millisecond, "the page does not show a clock set by %d seconds: %s", seconds, tail(a.gate.Stderr))
}

package process

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// SeparateStdout returns a file for the program's own output and makes descriptor 1 standard error: libraries that print to standard
// output, as some of NVIDIA's do, would otherwise write between lines of JSON.
func SeparateStdout() (*os.File, error) {
	own, err := unix.FcntlInt(1, unix.F_DUPFD_CLOEXEC, 3)
	if err == nil {
		err = unix.Dup3(2, 1, 0)
	}
	if err != nil {
		return nil, fmt.Errorf("standard output: %w", err)
	}
	return os.NewFile(uintptr(own), "/dev/stdout"), nil
}

// RestoreStdout makes the output of SeparateStdout descriptor 1 again, for a program that is started in the place of this one.
func RestoreStdout(own *os.File) error { return unix.Dup3(int(own.Fd()), 1, 0) }

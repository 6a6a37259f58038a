package bundle

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"
)

// Update servers made for SWUpdate take nothing but its images, .swu: cpio archives of the form newc that begin with a description. A
// bundle in one is its file as the only .tar of the archive.
const (
	swuExtension   = ".swu"
	swuDescription = "sw-description"

	cpioHeader  = 110 // bytes: a magic and 13 numbers of 8 hexadecimal digits
	cpioNewc    = "070701"
	cpioChecked = "070702" // with sums, which are not needed here
	cpioEnd     = "TRAILER!!!"
	cpioAlign   = 4
	maxCPIOName = 256
	cpioFile    = 0o100644
)

// errSWU says what is wrong with an archive.
var errSWU = errors.New("it is not an image of SWUpdate with one .tar in it (make it with edge-infer bundle make --out NAME.swu)")

// unwrapSWU returns the bundle inside an image of SWUpdate of that many bytes, and the whole file if it is none.
func unwrapSWU(file io.ReaderAt, size int64) (io.ReaderAt, int64, error) {
	var found *section
	for at, count := int64(0), 0; ; count++ {
		var header [cpioHeader]byte
		_, err := file.ReadAt(header[:], at)
		magic := string(header[:len(cpioNewc)])
		isEntry := err == nil && (magic == cpioNewc || magic == cpioChecked)
		switch {
		case !isEntry && count == 0:
			return file, size, nil
		case !isEntry || count == maxEntries:
			return nil, 0, errSWU
		}
		length, err := strconv.ParseInt(string(header[54:62]), 16, 64)
		named, badName := strconv.ParseInt(string(header[94:102]), 16, 64)
		if err != nil || badName != nil || named < 1 || named > maxCPIOName || length < 0 {
			return nil, 0, errSWU
		}
		name := make([]byte, named)
		if _, err := file.ReadAt(name, at+cpioHeader); err != nil {
			return nil, 0, errSWU
		}
		data := section{aligned(at + cpioHeader + named), length}
		switch text := strings.TrimRight(string(name), "\x00"); {
		case text == cpioEnd && found != nil:
			return io.NewSectionReader(file, found.offset, found.size), found.size, nil
		case text == cpioEnd, data.offset > size-data.size, path.Ext(text) == ".tar" && found != nil:
			return nil, 0, errSWU
		case path.Ext(text) == ".tar":
			found = &data
		}
		at = aligned(data.offset + data.size)
	}
}

func aligned(offset int64) int64 { return (offset + cpioAlign - 1) / cpioAlign * cpioAlign }

// swuWriter wraps a bundle into an image of SWUpdate.
type swuWriter struct {
	to      io.Writer
	written int64
}

// begin writes what comes before a bundle of that many bytes.
func (w *swuWriter) begin(i *Info, size int64) error {
	text := fmt.Appendf(nil, "software =\n{\n\tversion = \"%d\";\n\tdescription = \"%s\";\n}\n", i.Version, i.Name)
	if err := w.header(swuDescription, int64(len(text))); err != nil {
		return err
	}
	if _, err := w.Write(text); err != nil {
		return err
	}
	return w.header(i.Name+".tar", size)
}

// end writes what comes after it.
func (w *swuWriter) end() error { return errors.Join(w.header(cpioEnd, 0), w.align()) }

// Write implements io.Writer.
func (w *swuWriter) Write(data []byte) (int, error) {
	n, err := w.to.Write(data)
	w.written += int64(n)
	return n, err
}

func (w *swuWriter) align() error {
	_, err := w.Write(make([]byte, aligned(w.written)-w.written))
	return err
}

// header writes the header of an entry.
func (w *swuWriter) header(name string, size int64) error {
	if err := w.align(); err != nil {
		return err
	}
	var header bytes.Buffer
	header.WriteString(cpioNewc)
	for _, field := range []int64{0, cpioFile, 0, 0, 1, 0, size, 0, 0, 0, 0, int64(len(name) + 1), 0} {
		fmt.Fprintf(&header, "%08X", field)
	}
	header.WriteString(name + "\x00")
	if _, err := w.Write(header.Bytes()); err != nil {
		return err
	}
	return w.align()
}

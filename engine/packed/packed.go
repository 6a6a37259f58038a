// Package packed unpacks what is part of the program in gzip's form, because it is large and not always needed.
package packed

import (
	"bytes"
	"compress/gzip"
	"io"
)

// Unpack gives what was packed, in memory of the caller's. It panics where that is damaged, as the program is then.
func Unpack(packed []byte) []byte {
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		panic(err)
	}
	data, err := io.ReadAll(reader)
	if err != nil {
		panic(err)
	}
	return data
}

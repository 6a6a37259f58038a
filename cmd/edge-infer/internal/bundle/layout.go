package bundle

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"syscall"

	"github.com/opencontainers/go-digest"
	oci "github.com/opencontainers/image-spec/specs-go/v1"
)

// Limits of a layout.
const (
	maxEntries   = 1000
	maxManifests = 32      // of the index, and referrers of a manifest that are read
	maxSignature = 4 << 10 // bytes
)

// layout is a bundle in a file: an OCI image layout in an uncompressed tar archive, which is read in place, in an image of SWUpdate as
// well.
type layout struct {
	file  io.ReaderAt
	parts map[string]section

	data   []byte         // of the bundle's manifest
	signed [][]byte       // its signatures
	bundle oci.Descriptor // of the manifest

	close func() error
}

// section is the place of an entry in the archive, in bytes.
type section struct{ offset, size int64 }

var layoutEntry = regexp.MustCompile(`^(oci-layout|index\.json|blobs/sha256/[0-9a-f]{64})$`)

// openLayout opens a bundle in a file.
func openLayout(path string) (*layout, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe would block
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("no such file (name a file, an https:// address, or HOST/NAME:TAG in a registry)")
	}
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("not a regular file (name the file of edge-infer bundle make)")
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	inner, size, err := unwrapSWU(file, info.Size())
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	l, err := readLayout(inner, size)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	l.close = file.Close
	return l, nil
}

// readLayout reads the directory of an archive of that many bytes, and the bundle's manifest with its signatures.
func readLayout(file io.ReaderAt, size int64) (*layout, error) {
	l := &layout{file: file, parts: map[string]section{}, close: func() error { return nil }}
	if err := l.checkCompression(); err != nil {
		return nil, err
	}
	if err := l.readEntries(size); err != nil {
		return nil, err
	}
	text, err := l.read("oci-layout", maxManifest)
	if err != nil {
		return nil, err
	}
	var version oci.ImageLayout
	if json.Unmarshal(text, &version) != nil || version.Version != oci.ImageLayoutVersion {
		return nil, fmt.Errorf("its oci-layout is not of version %s (make it with edge-infer bundle make)", oci.ImageLayoutVersion)
	}
	return l, l.readIndex()
}

// checkCompression returns an error for the compressed archives that tools like to make.
func (l *layout) checkCompression() error {
	var start [4]byte
	if n, err := l.file.ReadAt(start[:], 0); err != nil && n < len(start) {
		return errors.New("it is empty or cut off (copy or download it again)")
	}
	for _, magic := range []string{"\x1f\x8b", "\x28\xb5\x2f\xfd", "BZh", "\xfd7zX"} {
		if bytes.HasPrefix(start[:], []byte(magic)) {
			return errors.New("it is compressed: a bundle is a plain tar file (unpack it first)")
		}
	}
	return nil
}

// readEntries finds the entries of the archive. It accepts only what belongs into a layout.
func (l *layout) readEntries(size int64) error {
	whole := io.NewSectionReader(l.file, 0, size)
	archive := tar.NewReader(whole)
	for count := 0; ; count++ {
		header, err := archive.Next()
		switch {
		case errors.Is(err, io.EOF) && count > 0:
			return nil
		case errors.Is(err, io.EOF), errors.Is(err, tar.ErrHeader):
			return errors.New("it is not a bundle: an OCI image layout in a tar file (make it with edge-infer bundle make)")
		case errors.Is(err, io.ErrUnexpectedEOF):
			return errors.New("it is cut off (copy or download it again)")
		case err != nil:
			return err
		case count == maxEntries:
			return fmt.Errorf("it has more than %d entries (make it with edge-infer bundle make)", maxEntries)
		}
		offset, err := whole.Seek(0, io.SeekCurrent) // the archive reads no further than the header
		if err != nil {
			return err
		}
		if err := l.addEntry(header, section{offset, header.Size}, size); err != nil {
			return err
		}
	}
}

// addEntry adds an entry of an archive of that many bytes.
func (l *layout) addEntry(header *tar.Header, at section, size int64) error {
	const remedy = "(make it with edge-infer bundle make)"
	name := strings.TrimPrefix(header.Name, "./")
	sparse := false
	for key := range header.PAXRecords {
		sparse = sparse || strings.HasPrefix(key, "GNU.sparse.")
	}
	_, twice := l.parts[name]
	switch {
	case header.Typeflag == tar.TypeDir: // nothing is unpacked
		return nil
	case !layoutEntry.MatchString(name):
		return fmt.Errorf("its entry %.200q does not belong into a bundle %s", header.Name, remedy)
	case header.Typeflag != tar.TypeReg || sparse:
		return fmt.Errorf("its entry %s is a link or sparse %s", name, remedy)
	case twice:
		return fmt.Errorf("its entry %s is there twice %s", name, remedy)
	case at.size < 0 || at.offset > size-at.size:
		return errors.New("it is cut off (copy or download it again)")
	}
	l.parts[name] = at
	return nil
}

// read returns the contents of an entry of at most that many bytes.
func (l *layout) read(name string, most int64) ([]byte, error) {
	at, ok := l.parts[name]
	switch {
	case !ok:
		return nil, fmt.Errorf("it has no %s (copy or download it again, or make it with edge-infer bundle make)", name)
	case at.size > most:
		return nil, fmt.Errorf("its %s has %d bytes, at most %d are read", name, at.size, most)
	}
	data := make([]byte, at.size)
	_, err := io.ReadFull(io.NewSectionReader(l.file, at.offset, at.size), data)
	return data, err
}

// readBlob returns a content of at most that many bytes and checks its digest.
func (l *layout) readBlob(d *oci.Descriptor, most int64) ([]byte, error) {
	if err := checkDescriptor(d, most); err != nil {
		return nil, err
	}
	data, err := l.read(blobName(d.Digest), most)
	if err == nil && (digest.FromBytes(data) != d.Digest || int64(len(data)) != d.Size) {
		err = fmt.Errorf("the contents of %s are not those of its name (copy or download it again)", d.Digest)
	}
	return data, err
}

func blobName(d digest.Digest) string { return "blobs/sha256/" + d.Encoded() }

// readIndex finds the bundle and its signatures in the index.
func (l *layout) readIndex() error {
	text, err := l.read("index.json", maxManifest)
	if err != nil {
		return err
	}
	var index oci.Index
	if err := json.Unmarshal(text, &index); err != nil {
		return fmt.Errorf("its index.json cannot be read: %w", err)
	}
	if len(index.Manifests) > maxManifests {
		return fmt.Errorf("its index.json has %d manifests, at most %d are read", len(index.Manifests), maxManifests)
	}
	manifests := make([]oci.Manifest, len(index.Manifests))
	found := map[digest.Digest]bool{}
	for at := range index.Manifests {
		d := &index.Manifests[at]
		data, err := l.readBlob(d, maxManifest)
		if err != nil {
			return fmt.Errorf("its index.json: %w", err)
		}
		if json.Unmarshal(data, &manifests[at]) != nil {
			continue // of another kind
		}
		if m := &manifests[at]; artifactType(m) == typeManifest && m.Subject == nil {
			l.data = data
			l.bundle = descriptor(oci.MediaTypeImageManifest, data)
			found[d.Digest] = true
		}
	}
	if len(found) != 1 {
		return fmt.Errorf("it holds %d model bundles instead of one (make it with edge-infer bundle make)", len(found))
	}
	for at := range manifests {
		text := signatureLayer(&manifests[at], l.bundle.Digest)
		if text == nil {
			continue
		}
		data, err := l.readBlob(text, maxSignature)
		if err != nil {
			return fmt.Errorf("its signature: %w", err)
		}
		l.signed = append(l.signed, data)
	}
	return nil
}

// manifest returns the manifest of the bundle.
func (l *layout) manifest(context.Context) ([]byte, error) { return l.data, nil }

// signatures returns the signatures of the manifest.
func (l *layout) signatures(context.Context, []byte) ([][]byte, error) { return l.signed, nil }

// receive writes a content to a file.
func (l *layout) receive(_ context.Context, f *File, to *os.File) (received int64, err error) {
	d := f.descriptor()
	at, ok := l.parts[blobName(d.Digest)]
	switch {
	case !ok:
		return 0, errors.New("it is missing (copy or download the bundle again)")
	case at.size != f.Bytes:
		return 0, fmt.Errorf("it has %d bytes instead of %d (copy or download the bundle again)", at.size, f.Bytes)
	}
	if err := to.Truncate(0); err != nil {
		return 0, err
	}
	if _, err := to.Seek(0, io.SeekStart); err != nil {
		return 0, err
	}
	if _, err := io.Copy(to, io.NewSectionReader(l.file, at.offset, at.size)); err != nil {
		return 0, err
	}
	return 0, to.Sync()
}

// Close closes the file.
func (l *layout) Close() error { return l.close() }

package bundle

import (
	"context"
	"errors"
	"fmt"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/catalogue"
)

// opened is a bundle whose manifest has been read and checked. Close closes its source.
type opened struct {
	*Info
	source

	data   []byte // of the manifest
	signed [][]byte
	// verifiedBy is the id of the key that signed the manifest; empty without keys.
	verifiedBy string
}

// openBundle opens a source and checks the manifest, before anything in it is used: its signature if there are keys, then its contents.
func openBundle(ctx context.Context, s *Source, store catalogue.Store, keys Keys) (*opened, error) {
	from, err := s.open(ctx, store)
	if err != nil {
		return nil, err
	}
	b := &opened{source: from}
	if err := b.read(ctx, s, keys); err != nil {
		return nil, errors.Join(err, from.Close())
	}
	return b, nil
}

func (b *opened) read(ctx context.Context, s *Source, keys Keys) (err error) {
	if b.data, err = b.manifest(ctx); err != nil {
		return err
	}
	if b.signed, err = b.signatures(ctx, b.data); err != nil {
		return err
	}
	if len(keys) > 0 {
		if b.verifiedBy, err = keys.verify(b.data, b.signed); err != nil {
			return err
		}
	}
	if b.Info, err = parseManifest(b.data); err != nil {
		return err
	}
	if b.Bytes() > s.maxBytes() {
		return fmt.Errorf("its files have %d bytes, the limit is %d (--max-size raises it)", b.Bytes(), s.maxBytes())
	}
	return nil
}

// receiveFile receives a file of the bundle in the store and checks its digest. The caller closes the part, and moves or removes it.
func (b *opened) receiveFile(ctx context.Context, store catalogue.Store, f *File) (part *catalogue.Part, received int64, err error) {
	part, err = store.OpenPart(ctx, f.SHA256)
	if err != nil {
		return nil, 0, fmt.Errorf("%s: %w", f.Path, err)
	}
	received, err = b.receive(ctx, f, part.File)
	if err != nil {
		return nil, received, errors.Join(fmt.Errorf("%s: %w", f.Path, err), part.Close())
	}
	have, err := part.Hash()
	if err == nil && have != f.SHA256 {
		err = fmt.Errorf("%s: its sha256 is %s, not %s: it was changed or damaged (get the bundle again, or elsewhere)", f.Path, have, f.SHA256)
		err = errors.Join(err, part.Remove())
	}
	if err != nil {
		return nil, received, errors.Join(err, part.Close())
	}
	return part, received, nil
}

// summary describes the bundle for a person.
func (b *opened) summary(location string) Summary {
	return Summary{Version: 1, Source: location, Bundle: *b.Info, VerifiedBy: b.verifiedBy, SignedBy: signers(b.signed)}
}

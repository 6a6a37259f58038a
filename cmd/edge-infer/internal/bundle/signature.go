package bundle

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"aead.dev/minisign"
	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	oci "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/edge-infer/edge-infer/internal/boundedfile"
)

// emptyConfig is the config of a signature's manifest.
var emptyConfig = []byte("{}")

// signature is a minisign signature of a bundle's manifest: its text, and the manifest that refers to the bundle.
type signature struct{ text, manifest []byte }

// sign signs the manifest of a bundle.
func sign(key minisign.PrivateKey, i *Info, manifest []byte) (signature, error) {
	reader := minisign.NewReader(strings.NewReader(string(manifest)))
	if _, err := io.Copy(io.Discard, reader); err != nil {
		return signature{}, err
	}
	text := reader.SignWithComments(key, fmt.Sprintf("edge-infer bundle %s version %d", i.Name, i.Version),
		"signature of the manifest, by key "+keyID(key.ID()))
	data, err := signatureManifest(descriptor(oci.MediaTypeImageManifest, manifest), text)
	return signature{text: text, manifest: data}, err
}

// signatureManifest returns the manifest of a signature, which refers to that of the bundle.
func signatureManifest(subject oci.Descriptor, text []byte) ([]byte, error) {
	layer := descriptor(typeSignature, text)
	layer.Annotations = map[string]string{oci.AnnotationTitle: signatureName}
	return json.Marshal(oci.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: oci.MediaTypeImageManifest, ArtifactType: typeSignature,
		Config:  descriptor(typeSignature, emptyConfig), // registries that know no artifact type list this one instead
		Layers:  []oci.Descriptor{layer},
		Subject: &subject,
	})
}

// signatureLayer returns the layer of a manifest that signs the subject, nil for other manifests.
func signatureLayer(m *oci.Manifest, subject digest.Digest) *oci.Descriptor {
	if artifactType(m) != typeSignature || m.Subject == nil || m.Subject.Digest != subject || len(m.Layers) != 1 {
		return nil
	}
	return &m.Layers[0]
}

// Keys are public keys, of which one must have signed a bundle. Without keys unsigned bundles are accepted.
type Keys []minisign.PublicKey

// ReadKeys reads public keys of minisign: each the key itself, which begins with RW, or the name of its file.
func ReadKeys(list []string) (Keys, error) {
	var keys Keys
	for _, text := range list {
		var key minisign.PublicKey
		if key.UnmarshalText([]byte(text)) == nil {
			keys = append(keys, key)
			continue
		}
		data, err := boundedfile.Read(text, boundedfile.Small)
		if err == nil {
			err = key.UnmarshalText([]byte(strings.TrimRight(string(data), "\r\n")))
		}
		if err != nil {
			return nil, fmt.Errorf("key %.100s: %w (name a public key of minisign, RW..., or its file)", text, err)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// verify returns the id of the key that signed the manifest.
func (k Keys) verify(manifest []byte, signatures [][]byte) (id string, err error) {
	if len(signatures) == 0 {
		return "", errors.New("it is not signed, and a key is set (ask its publisher, or sign it with edge-infer bundle make --sign)")
	}
	for _, text := range signatures {
		for _, key := range k {
			if minisign.Verify(key, manifest, text) {
				return keyID(key.ID()), nil
			}
		}
	}
	var known []string
	for _, key := range k {
		known = append(known, keyID(key.ID()))
	}
	signers := signers(signatures)
	for _, id := range signers {
		if slices.Contains(known, id) {
			return "", fmt.Errorf("its signature by key %s is wrong: it was changed (get it again from its publisher)", id)
		}
	}
	return "", fmt.Errorf("it is signed by key %s, not by %s (ask its publisher for the right key, see --key)", strings.Join(signers, ", "),
		strings.Join(known, ", "))
}

// signers returns the key ids that signatures state, which proves nothing.
func signers(signatures [][]byte) []string {
	ids := []string{}
	for _, text := range signatures {
		var s minisign.Signature
		id := "unknown"
		if s.UnmarshalText(text) == nil {
			id = keyID(s.KeyID)
		}
		ids = append(ids, id)
	}
	return ids
}

// keyID returns a key's id as minisign prints it.
func keyID(id uint64) string { return fmt.Sprintf("%X", id) }

// readPrivateKey reads the file of a private key. password is asked for its password if it has one.
func readPrivateKey(path string, password func(prompt string) (string, error)) (minisign.PrivateKey, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return minisign.PrivateKey{}, fmt.Errorf("signing key: %w (minisign -G makes a pair)", err)
	}
	var key minisign.PrivateKey
	text := []byte(strings.TrimRight(string(data), "\r\n"))
	if minisign.IsEncrypted(text) {
		secret, err := password("password of " + path + ": ")
		if err == nil {
			key, err = minisign.DecryptKey(secret, text)
		}
		if err != nil {
			return minisign.PrivateKey{}, fmt.Errorf("signing key %s: %w (a pair without a password: minisign -G -W)", path, err)
		}
		return key, nil
	}
	if err := key.UnmarshalText(text); err != nil {
		return minisign.PrivateKey{}, fmt.Errorf("signing key %s: %w (name the secret key that minisign -G wrote)", path, err)
	}
	return key, nil
}

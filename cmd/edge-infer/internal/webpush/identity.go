package webpush

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/edge-infer/edge-infer/internal/atomicfile"
	"github.com/edge-infer/edge-infer/internal/boundedfile"
)

// Identity is the key by which push services know this device. Browsers subscribe for it.
type Identity struct{ key *ecdsa.PrivateKey }

// validity is how long a signature is valid; push services take a day at most.
const validity = 12 * time.Hour

// contact is where operators of push services find who is responsible.
const contact = "https://github.com/edge-infer/edge-infer"

// pemType is the type of the block in the file of an identity.
const pemType = "PRIVATE KEY"

// OpenIdentity reads the identity in a file, or makes one: with another one every browser has to subscribe again.
func OpenIdentity(path string) (*Identity, error) {
	data, err := boundedfile.Read(path, boundedfile.Small)
	if errors.Is(err, fs.ErrNotExist) {
		return makeIdentity(path)
	}
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(data)
	if block == nil || block.Type != pemType {
		return nil, fmt.Errorf("%s is no key in PEM (remove it: browsers have to subscribe again then)", path)
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	own, ok := key.(*ecdsa.PrivateKey)
	if err != nil || !ok || own.Curve != elliptic.P256() {
		return nil, fmt.Errorf("%s is no key on the curve P-256 (remove it: browsers have to subscribe again then)", path)
	}
	return &Identity{own}, nil
}

func makeIdentity(path string) (*Identity, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	return &Identity{key}, atomicfile.Write(path, pem.EncodeToMemory(&pem.Block{Type: pemType, Bytes: der}), 0o600)
}

// PublicKey returns the key that browsers subscribe for, in base64 of URLs.
func (i *Identity) PublicKey() (string, error) {
	public, err := i.key.PublicKey.Bytes()
	return base64.RawURLEncoding.EncodeToString(public), err
}

// Authorization returns the header of a request to the push service of an endpoint.
func (i *Identity) Authorization(endpoint string, now time.Time) (string, error) {
	to, err := url.Parse(endpoint)
	if err != nil {
		return "", errors.New("the address of the push service cannot be read")
	}
	claims, err := json.Marshal(struct {
		Audience string `json:"aud"`
		Expires  int64  `json:"exp"`
		Subject  string `json:"sub"`
	}{to.Scheme + "://" + to.Host, now.Add(validity).Unix(), contact})
	if err != nil {
		return "", err
	}
	encode := base64.RawURLEncoding.EncodeToString
	token := encode([]byte(`{"typ":"JWT","alg":"ES256"}`)) + "." + encode(claims)
	sum := sha256.Sum256([]byte(token))
	r, s, err := ecdsa.Sign(rand.Reader, i.key, sum[:])
	if err != nil {
		return "", err
	}
	signature := make([]byte, 64)
	r.FillBytes(signature[:32])
	s.FillBytes(signature[32:])
	public, err := i.PublicKey()
	return "vapid t=" + token + "." + encode(signature) + ", k=" + public, err
}

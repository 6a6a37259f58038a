// Package webpush writes messages for the push services of browsers: encrypted for one browser as RFC 8291 specifies, and signed for the
// push service as RFC 8292 (VAPID) does.
package webpush

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

const (
	saltBytes   = 16
	authBytes   = 16
	keyBytes    = 65 // of a public key, uncompressed
	recordBytes = 4096
	// MaxMessage is how many bytes a message may have, so that it fits into one record.
	MaxMessage = recordBytes - saltBytes - 4 - 1 - keyBytes - 17
	lastRecord = 2 // after the message
)

// Keys are the public key and the secret of a browser's subscription.
type Keys struct {
	public *ecdh.PublicKey
	auth   []byte
}

// ParseKeys reads the public key and the secret from the form that String writes: both in base64 of URLs, with a dot between them.
func ParseKeys(text string) (Keys, error) {
	public, auth, _ := strings.Cut(text, ".")
	key, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(public, "="))
	if err != nil {
		return Keys{}, errors.New("p256dh is not base64")
	}
	k := Keys{}
	k.public, err = ecdh.P256().NewPublicKey(key)
	if err != nil {
		return Keys{}, errors.New("p256dh is no public key on the curve P-256")
	}
	k.auth, err = base64.RawURLEncoding.DecodeString(strings.TrimRight(auth, "="))
	if err != nil || len(k.auth) != authBytes {
		return Keys{}, fmt.Errorf("auth is not base64 of %d bytes", authBytes)
	}
	return k, nil
}

// String returns the keys in the form of ParseKeys. It holds a secret.
func (k Keys) String() string {
	return base64.RawURLEncoding.EncodeToString(k.public.Bytes()) + "." + base64.RawURLEncoding.EncodeToString(k.auth)
}

// Encrypt returns the body of a request with a message for the browser.
func (k Keys) Encrypt(message []byte) ([]byte, error) {
	own, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	salt := make([]byte, saltBytes)
	if _, err := rand.Read(salt); err != nil {
		return nil, err
	}
	return k.encrypt(message, own, salt)
}

func (k Keys) encrypt(message []byte, own *ecdh.PrivateKey, salt []byte) ([]byte, error) {
	if len(message) > MaxMessage {
		return nil, fmt.Errorf("a message of %d bytes, at most %d can be pushed", len(message), MaxMessage)
	}
	shared, err := own.ECDH(k.public)
	if err != nil {
		return nil, err
	}
	key, nonce, err := k.derive(shared, own.PublicKey().Bytes(), salt)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	sealer, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	body := append([]byte{}, salt...)
	body = binary.BigEndian.AppendUint32(body, recordBytes)
	body = append(append(body, keyBytes), own.PublicKey().Bytes()...)
	return sealer.Seal(body, nonce, append(message[:len(message):len(message)], lastRecord), nil), nil
}

// derive returns the key and the nonce of the one record of a message.
func (k Keys) derive(shared, own, salt []byte) (key, nonce []byte, err error) {
	first, err := hkdf.Extract(sha256.New, shared, k.auth)
	if err != nil {
		return nil, nil, err
	}
	material, err := hkdf.Expand(sha256.New, first, "WebPush: info\x00"+string(k.public.Bytes())+string(own), sha256.Size)
	if err != nil {
		return nil, nil, err
	}
	second, err := hkdf.Extract(sha256.New, material, salt)
	if err != nil {
		return nil, nil, err
	}
	key, err = hkdf.Expand(sha256.New, second, "Content-Encoding: aes128gcm\x00", aes.BlockSize)
	if err != nil {
		return nil, nil, err
	}
	nonce, err = hkdf.Expand(sha256.New, second, "Content-Encoding: nonce\x00", 12)
	return key, nonce, err
}

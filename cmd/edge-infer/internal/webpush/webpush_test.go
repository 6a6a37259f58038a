package webpush

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func decode(t *testing.T, text string) []byte {
	data, err := base64.RawURLEncoding.DecodeString(text)
	require.NoError(t, err)
	return data
}

// TestExampleOfTheRFC is the example of RFC 8291, section 5 and appendix A.
func TestExampleOfTheRFC(t *testing.T) {
	keys, err := ParseKeys("BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4.BTBZMqHH6r4Tts7J_aSIgg")
	require.NoError(t, err)
	own, err := ecdh.P256().NewPrivateKey(decode(t, "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"))
	require.NoError(t, err)
	body, err := keys.encrypt([]byte("When I grow up, I want to be a watermelon"), own, decode(t, "DGv6ra1nlYgDCS1FRnbzlw"))
	require.NoError(t, err)
	assert.Equal(t, "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPT"+
		"pK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN", base64.RawURLEncoding.EncodeToString(body))
	assert.Equal(t, keys.String(), mustParse(t, keys.String()).String())
}

func mustParse(t *testing.T, text string) Keys {
	keys, err := ParseKeys(text)
	require.NoError(t, err)
	return keys
}

// TestABrowserReadsMessages: decryption as the RFC describes it for the browser.
func TestABrowserReadsMessages(t *testing.T) {
	private, err := ecdh.P256().GenerateKey(nil)
	require.NoError(t, err)
	auth := make([]byte, authBytes)
	encode := base64.RawURLEncoding.EncodeToString
	keys := mustParse(t, encode(private.PublicKey().Bytes())+"."+encode(auth)+"==")
	for _, size := range []int{0, 1, MaxMessage} {
		message := []byte(strings.Repeat("x", size))
		body, err := keys.Encrypt(message)
		require.NoError(t, err)
		require.LessOrEqual(t, len(body), recordBytes)
		sender, err := ecdh.P256().NewPublicKey(body[21:86])
		require.NoError(t, err)
		shared, err := private.ECDH(sender)
		require.NoError(t, err)
		key, nonce, err := keys.derive(shared, sender.Bytes(), body[:saltBytes])
		require.NoError(t, err)
		block, err := aes.NewCipher(key)
		require.NoError(t, err)
		opener, err := cipher.NewGCM(block)
		require.NoError(t, err)
		plain, err := opener.Open(nil, nonce, body[86:], nil)
		require.NoError(t, err)
		assert.Equal(t, string(message)+"\x02", string(plain))
	}
	_, err = keys.Encrypt(make([]byte, MaxMessage+1))
	require.ErrorContains(t, err, "can be pushed")
}

func TestWrongKeys(t *testing.T) {
	good := "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
	for text, want := range map[string]string{
		"": "P-256", "?.x": "not base64", "AAAA.BTBZMqHH6r4Tts7J_aSIgg": "P-256", good: "auth is not", good + ".AAAA": "auth is not",
		good + ".?": "auth is not",
	} {
		_, err := ParseKeys(text)
		require.ErrorContains(t, err, want, text)
	}
}

func FuzzParseKeys(f *testing.F) {
	f.Add("BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4.BTBZMqHH6r4Tts7J_aSIgg")
	f.Fuzz(func(t *testing.T, text string) {
		keys, err := ParseKeys(text)
		if err == nil {
			_, err = keys.Encrypt([]byte("x"))
			require.NoError(t, err)
		}
	})
}

// TestIdentity: it outlasts restarts, and its signature is one that push services accept.
func TestIdentity(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "webpush.key")
	one, err := OpenIdentity(path)
	require.NoError(t, err)
	again, err := OpenIdentity(path)
	require.NoError(t, err)
	public, err := one.PublicKey()
	require.NoError(t, err)
	same, err := again.PublicKey()
	require.NoError(t, err)
	assert.Equal(t, public, same)
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.EqualValues(t, 0o600, info.Mode().Perm())

	now := time.Now()
	header, err := one.Authorization("https://push.example.org/one/two?x", now)
	require.NoError(t, err)
	token, key, found := strings.Cut(strings.TrimPrefix(header, "vapid t="), ", k=")
	require.True(t, found)
	assert.Equal(t, public, key)
	parts := strings.Split(token, ".")
	require.Len(t, parts, 3)
	var claims struct {
		Aud, Sub string
		Exp      int64
	}
	require.NoError(t, json.Unmarshal(decode(t, parts[1]), &claims))
	assert.Equal(t, "https://push.example.org", claims.Aud)
	assert.Greater(t, claims.Exp, now.Unix())
	assert.Less(t, claims.Exp, now.Add(24*time.Hour).Unix())
	known, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), decode(t, key))
	require.NoError(t, err)
	signature := decode(t, parts[2])
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	assert.True(t, ecdsa.Verify(known, sum[:], new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:])))

	require.NoError(t, os.WriteFile(path, []byte("x"), 0o600))
	_, err = OpenIdentity(path)
	require.ErrorContains(t, err, "is no key in PEM (remove it")
}

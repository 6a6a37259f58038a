package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	oci "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/catalogue"
)

func hashOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// entry is an entry of an archive.
type entry struct {
	tar.Header
	data []byte
}

func entries(t *testing.T, file string) (all []entry) {
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	archive := tar.NewReader(bytes.NewReader(data))
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		data, err := io.ReadAll(archive)
		require.NoError(t, err)
		all = append(all, entry{*header, data})
	}
}

// rewritten is the archive with other entries.
func rewritten(t *testing.T, file string, change func([]entry) []entry) string {
	var out bytes.Buffer
	archive := tar.NewWriter(&out)
	for _, e := range change(entries(t, file)) {
		e.Size = int64(len(e.data))
		require.NoError(t, archive.WriteHeader(&e.Header))
		_, err := archive.Write(e.data)
		require.NoError(t, err)
	}
	require.NoError(t, archive.Close())
	return write(t, "belt.tar", out.Bytes())
}

// added is the archive with one more entry.
func added(t *testing.T, file string, header tar.Header) string {
	return rewritten(t, file, func(all []entry) []entry { return append(all, entry{Header: header}) })
}

// withSparse is the archive with an entry of a terabyte of zeros that takes a kilobyte.
func withSparse(t *testing.T, file string) string {
	made := rewritten(t, file, func(all []entry) []entry {
		return append(all, entry{
			Header: tar.Header{Name: "blobs/sha256/" + hashOf(nil), PAXRecords: map[string]string{
				"GNU_sparse.major": "1", "GNU_sparse.minor": "0", "GNU_sparse.realsize": "1099511627776",
			}},
			data: append([]byte("1\n1099511627776\n0\n"), make([]byte, 494)...),
		})
	})
	data, err := os.ReadFile(made)
	require.NoError(t, err)
	data = bytes.ReplaceAll(data, []byte("GNU_sparse"), []byte("GNU.sparse")) // which archive/tar does not write
	return write(t, "belt.tar", data)
}

// resigned is a bundle with another manifest, which signer signs; the signature is as it was if that is nil.
func resigned(t *testing.T, file string, signer *pair, change func(m *oci.Manifest) (more []byte)) string {
	l, err := openLayout(file)
	require.NoError(t, err)
	defer l.Close()
	var m oci.Manifest
	require.NoError(t, json.Unmarshal(l.data, &m))
	config, err := l.readBlob(&m.Config, maxManifest)
	require.NoError(t, err)
	var blobs []blob
	for at := range m.Layers {
		data, err := l.readBlob(&m.Layers[at], 1<<30)
		require.NoError(t, err)
		blobs = append(blobs, blob{m.Layers[at], data})
	}
	if more := change(&m); more != nil {
		blobs = append(blobs, blob{descriptor("", more), more})
	}
	manifest, err := json.Marshal(m)
	require.NoError(t, err)
	var signatures []signature
	if signer != nil {
		s, err := sign(signer.key, &Info{Name: "belt", Version: 4}, manifest)
		require.NoError(t, err)
		signatures = append(signatures, s)
	} else {
		for _, text := range l.signed {
			data, err := signatureManifest(descriptor(oci.MediaTypeImageManifest, manifest), text)
			require.NoError(t, err)
			signatures = append(signatures, signature{text, data})
		}
	}
	made := &Make{Version: 4, Output: filepath.Join(t.TempDir(), "belt.tar"), blobs: blobs}
	require.NoError(t, made.write(config, manifest, signatures))
	return made.Output
}

// layer returns the layer of a manifest with that path.
func layer(m *oci.Manifest, path string) *oci.Descriptor {
	at := slices.IndexFunc(m.Layers, func(d oci.Descriptor) bool { return d.Annotations[pathAnnotation] == path })
	return &m.Layers[at]
}

// victim is a machine with version 3 of belt, and with the key of its publisher.
type victim struct {
	store  catalogue.Store
	key    pair
	before map[string]string // hashes of files of the store, by path
}

func newVictim(t *testing.T) *victim {
	v := &victim{store: store(t), key: newPair(t)}
	_, err := pull(t, v.store, make4(t, func(m *Make) {
		m.Version = 3
		m.Sign = []string{v.key.secret}
	}), v.key.keys(t))
	require.NoError(t, err)
	v.before = v.files(t)
	return v
}

// files returns the hashes of all files but those that only later pulls of the same contents use.
func (v *victim) files(t *testing.T) map[string]string {
	all := map[string]string{}
	require.NoError(t, filepath.WalkDir(v.store.Dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || strings.HasSuffix(path, ".part") {
			return err
		}
		data, err := os.ReadFile(path)
		all[path] = hashOf(data)
		return err
	}))
	return all
}

// refuses pulls and expects one line that contains want; what was installed stays.
func (v *victim) refuses(t *testing.T, source Source, want string) {
	t.Helper()
	_, err := (&Pull{Source: source, Store: v.store, Keys: v.key.keys(t)}).Run(t.Context())
	require.ErrorContains(t, err, want)
	assert.NotContains(t, err.Error(), "\n")
	assert.True(t, strings.HasPrefix(err.Error(), "bundle "+source.Location+": "), err.Error())
	assert.Equal(t, v.before, v.files(t))
	_, _, err = catalogue.Resolve("belt")
	require.NoError(t, err)
	versions, err := filepath.Glob(filepath.Join(v.store.Dir, ".bundles", "belt", "version-*"))
	require.NoError(t, err)
	assert.Len(t, versions, 1)
}

// Whatever is done to the file of a bundle, it is refused with one line, and the installed version stays as it was.
func TestAttacksByFiles(t *testing.T) {
	v := newVictim(t)
	good := make4(t, func(m *Make) { m.Sign = []string{v.key.secret} })
	blobOf := func(data []byte) string { return "blobs/sha256/" + hashOf(data) }
	replaced := func(name string, data []byte) string {
		return rewritten(t, good, func(all []entry) []entry {
			for at := range all {
				if all[at].Name == name {
					all[at].data = data
				}
			}
			return all
		})
	}
	labels := []byte("nut\nbolt\n")
	whole, err := os.ReadFile(good)
	require.NoError(t, err)
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	_, err = zip.Write(whole)
	require.NoError(t, errors.Join(err, zip.Close()))
	other := newPair(t)
	signed := func(change func(m *oci.Manifest)) string {
		return resigned(t, good, &v.key, func(m *oci.Manifest) []byte { change(m); return nil })
	}
	annotated := func(key, value string) string { return signed(func(m *oci.Manifest) { m.Annotations[key] = value }) }
	named := func(path string) string {
		return signed(func(m *oci.Manifest) { layer(m, labelsFile).Annotations[pathAnnotation] = path })
	}
	sized := func(bytes int64) string { return signed(func(m *oci.Manifest) { layer(m, modelFile).Size = bytes }) }
	many := func(m *oci.Manifest) {
		for range 100 {
			m.Layers = append(m.Layers, m.Layers[0])
		}
	}
	twin := append(bytes.Repeat([]byte(" "), 10), detector(t)...)
	for _, attack := range []struct{ name, file, want string }{
		{"not signed", make4(t, nil), "it is not signed, and a key is set (ask its publisher, or sign it with edge-infer bundle make --sign)"},
		{"wrong key", make4(t, func(m *Make) { m.Sign = []string{other.secret} }), fmt.Sprintf("it is signed by key %s, not by %s (",
			keyID(other.key.ID()), keyID(v.key.key.ID()))},
		{"changed manifest", resigned(t, good, nil, func(m *oci.Manifest) []byte {
			m.Annotations[oci.AnnotationVersion] = "5"
			return nil
		}), "its signature by key " + keyID(v.key.key.ID()) + " is wrong: it was changed (get it again from its publisher)"},
		{"junk for a signature", replaced(blobOf(signatureText(t, good)), []byte("junk")), "its signature: the contents of sha256:"},
		{"older version", make4(t, func(m *Make) {
			m.Version = 2
			m.Sign = []string{v.key.secret}
		}), "version 2 of belt is older than the installed version 3"},
		{"expired", make4(t, func(m *Make) {
			m.Expires = "2020-01-01"
			m.Sign = []string{v.key.secret}
		}), "version 4 of belt expired on 2020-01-01 ("},
		{"swapped layers", replaced(blobOf(labels), []byte("bolt\nnut\n")), "labels.txt: its sha256 is " + hashOf([]byte("bolt\nnut\n"))},
		{"longer layer", replaced(blobOf(labels), append(labels, 'x')), "labels.txt: it has 10 bytes instead of 9 ("},
		{"missing layer", rewritten(t, good, func(all []entry) []entry {
			return slices.DeleteFunc(all, func(e entry) bool { return e.Name == blobOf(labels) })
		}), "labels.txt: it is missing ("},
		{"cut off", write(t, "belt.tar", whole[:len(whole)/2]), "it is cut off (copy or download it again)"},
		{"cut off in a header", write(t, "belt.tar", whole[:700]), "it has no index.json (copy or download it again"},
		{"empty", write(t, "belt.tar", nil), "it is empty or cut off ("},
		{"compressed file", write(t, "belt.tar", packed.Bytes()), "it is compressed: a bundle is a plain tar file (unpack it first)"},
		{"no archive", write(t, "belt.tar", bytes.Repeat([]byte("x"), 2000)), "it is not a bundle: an OCI image layout in a tar file ("},
		{"parent directory", added(t, good, tar.Header{Name: "blobs/sha256/../../../x"}), `its entry "blobs/sha256/../../../x" does not belong`},
		{"absolute path", added(t, good, tar.Header{Name: "/etc/passwd"}), `its entry "/etc/passwd" does not belong into a bundle (`},
		{
			"link", added(t, good, tar.Header{Name: "blobs/sha256/" + hashOf(nil), Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}),
			"is a link or sparse (",
		},
		{"entry twice", added(t, good, tar.Header{Name: "index.json"}), "its entry index.json is there twice ("},
		{"sparse entry", withSparse(t, good), "is a link or sparse ("},
		{"other layout", replaced("oci-layout", []byte(`{"imageLayoutVersion":"9"}`)), "its oci-layout is not of version 1.0.0 ("},
		{"no index", rewritten(t, good, func(all []entry) []entry { return append(all[:1], all[2:]...) }), "it has no index.json ("},
		{"junk for an index", replaced("index.json", []byte("{")), "its index.json cannot be read: "},
		{"empty index", replaced("index.json", []byte("{}")), "it holds 0 model bundles instead of one ("},
		{"large index", replaced("index.json", make([]byte, maxManifest+1)), "its index.json has 1048577 bytes, at most 1048576 are read"},

		{
			"path of a layer", named("../../belt.onnx"),
			`file "../../belt.onnx" does not belong into a bundle (`,
		},
		{
			"absolute path of a layer", named("/etc/passwd"),
			`file "/etc/passwd" does not belong into a bundle (`,
		},
		{
			"path of a plan", named("plans/../../x.plan"),
			`file "plans/../../x.plan" does not belong into a bundle (`,
		},
		{"path of a name", annotated(oci.AnnotationTitle, "../belt"), `model name "../belt": it must`},
		{"layer twice", signed(func(m *oci.Manifest) { m.Layers = append(m.Layers, *layer(m, labelsFile)) }), "labels.txt is there twice ("},
		{"one content as two files", signed(func(m *oci.Manifest) {
			*layer(m, labelsFile) = oci.Descriptor{
				MediaType: typeSettings, Digest: layer(m, preprocessFile).Digest, Size: layer(m, preprocessFile).Size,
				Annotations: layer(m, labelsFile).Annotations,
			}
		}), "labels.txt and preprocess.yaml have the same contents ("},
		{
			"compressed layer", signed(func(m *oci.Manifest) { layer(m, modelFile).MediaType = "application/vnd.cncf.model.weight.v1.tar+gzip" }),
			"archives and compressed files are not unpacked (",
		},
		{"size of a layer", sized(1 << 61), "has 2305843009213693952 bytes ("},
		{"negative size", sized(-1), "size -1 is not 1 to "},
		{"other digest", signed(func(m *oci.Manifest) { layer(m, modelFile).Digest = "md5:00" }), `digest "md5:00" is not sha256: and 64`},
		{"over the limit", sized(5 << 30), "the limit is 4294967296 (--max-size raises it)"},
		{"many layers", signed(many), "its manifest has 103 files, at most 64 are installed"},
		{"no model", signed(func(m *oci.Manifest) { m.Layers = m.Layers[1:] }), "it has no model.onnx ("},
		{"no version", signed(func(m *oci.Manifest) { delete(m.Annotations, oci.AnnotationVersion) }), `version "" must be a whole number from 1 (`},
		{"large version", annotated(oci.AnnotationVersion, "99999999999999999999"), "must be a whole number"},
		{"unreadable expiry", annotated(expiresAnnotation, "never"), `expiry "never" is not a time such as`},
		{"confidence", annotated(confidenceAnnotation, "NaN"), `confidence "NaN" must be over 0 and at most 1 (`},
		{"lines in a text", annotated("x", "a\nsignature  valid"), "has characters that cannot be printed ("},
		{"long text", annotated("x", strings.Repeat("x", 301)), "has more than 300 characters ("},
		{"junk for a model", resigned(t, good, &v.key, func(m *oci.Manifest) []byte {
			junk := []byte("junk")
			layer(m, modelFile).Digest = descriptor("", junk).Digest
			layer(m, modelFile).Size = 4
			return junk
		}), "model.onnx: "},
		{"junk for labels", resigned(t, good, &v.key, func(m *oci.Manifest) []byte {
			layer(m, labelsFile).Digest = descriptor("", twin).Digest
			layer(m, labelsFile).Size = int64(len(twin))
			return twin
		}), "labels.txt: labels"},
	} {
		t.Run(attack.name, func(t *testing.T) { v.refuses(t, Source{Location: attack.file}, attack.want) })
	}
	v.refuses(t, Source{Location: good, MaxBytes: 1000}, "bytes, the limit is 1000 (--max-size raises it)")
	_, err = pull(t, v.store, good, v.key.keys(t))
	require.NoError(t, err, "the bundle itself is accepted")
}

// signatureText returns the first signature of a bundle.
func signatureText(t *testing.T, file string) []byte {
	l, err := openLayout(file)
	require.NoError(t, err)
	defer l.Close()
	return l.signed[0]
}

// Whatever a registry answers, it is refused with one line, and the installed version stays as it was.
func TestAttacksByRegistries(t *testing.T) {
	v := newVictim(t)
	good := make4(t, func(m *Make) { m.Sign = []string{v.key.secret} })
	model := "/blobs/sha256:" + hashOf(detector(t))
	changed := bytes.Clone(detector(t))
	changed[1000] ^= 1
	size := len(detector(t))
	body := func(data []byte, length int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", oci.MediaTypeImageManifest)
			if length >= 0 {
				w.Header().Set("Content-Length", fmt.Sprint(length))
			}
			_, _ = w.Write(data)
		}
	}
	unsigned := layoutManifest(t, make4(t, func(m *Make) { m.Version = 9 }))
	for _, attack := range []struct {
		name, path string // pattern of the requests to answer
		answer     http.HandlerFunc
		reference  string // :4 if empty
		want       string
	}{
		{"no referrers", "/referrers/|/manifests/sha256-", http.NotFound, "", "it is not signed, and a key is set ("},
		{"other manifest", "/manifests/4", body(unsigned, len(unsigned)), "", "it is not signed, and a key is set ("},
		{
			"other manifest for a digest", "/manifests/" + digestOf(t, good), body(unsigned, len(unsigned)), "@" + digestOf(t, good),
			"(check the registry and the network)",
		},
		{"lying digest", "/manifests/4", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Docker-Content-Digest", digestOf(t, good))
			body(unsigned, len(unsigned))(w, r)
		}, "", "sent another manifest than " + digestOf(t, good) + " (do not trust it, get the bundle elsewhere)"},
		{"large manifest", "/manifests/4", body(make([]byte, 3*maxManifest), 3*maxManifest), "", "its manifest has over 1048576 bytes ("},
		{"large manifest with its digest", "/manifests/4", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Docker-Content-Digest", digestOf(t, good))
			body(make([]byte, 3*maxManifest), 3*maxManifest)(w, r)
		}, "", "its manifest has over 1048576 bytes ("},
		{"image", "/manifests/4", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", oci.MediaTypeImageIndex)
			w.Header().Set("Content-Length", "2")
			_, _ = w.Write([]byte("{}"))
		}, "", "it is a application/vnd.oci.image.index.v1+json, not a model bundle ("},
		{"other contents", model, body(changed, size), "", "model.onnx: its sha256 is " + hashOf(changed) + ", not " + hashOf(detector(t))},
		{"more announced", model, body(detector(t), size+1), "", fmt.Sprintf("model.onnx: %d bytes are announced instead of %d", size+1, size)},
		{"less announced", model, body(detector(t)[:size-1], size-1), "", fmt.Sprintf("model.onnx: %d bytes are announced instead of", size-1)},
		{"endless contents", model, func(w http.ResponseWriter, _ *http.Request) {
			for {
				if _, err := w.Write(changed); err != nil {
					return
				}
			}
		}, "", fmt.Sprintf("model.onnx: larger than the expected %d bytes", size)},
		{"decompression bomb", model, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			zip := gzip.NewWriter(w)
			for range 100 {
				_, _ = zip.Write(make([]byte, 1<<20))
			}
			_ = zip.Close()
		}, "", fmt.Sprintf("model.onnx: larger than the expected %d bytes", size)},
		{"cut off", model, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(size))
			_, _ = w.Write(detector(t)[:1000])
			panic(http.ErrAbortHandler)
		}, "", "model.onnx: "},
		{
			"silent", "/manifests/4", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "",
			" for 100ms (check the registry and the network)",
		},
		{"silent contents", model, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "", " for 100ms"},
		{"elsewhere without TLS", model, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://files.example/model", http.StatusFound)
		}, "", "http:// to files.example is neither encrypted nor authenticated (use https, or --plain-http)"},
		{
			"faulty", "/manifests/4", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }, "",
			"answered 502 Bad Gateway",
		},
		{"nothing there", model, http.NotFound, "", "model.onnx: the server returned 404 Not Found"},
	} {
		t.Run(attack.name, func(t *testing.T) {
			lies := false
			answered := regexp.MustCompile(attack.path)
			host := serveRegistry(t, true, func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if lies && answered.MatchString(r.URL.Path) && r.Method == http.MethodGet {
						attack.answer(w, r)
						return
					}
					next.ServeHTTP(w, r)
				})
			})
			location := push(t, good, host)
			lies = true
			if attack.reference != "" {
				location = strings.TrimSuffix(location, ":4") + attack.reference
			}
			source := Source{Location: location}
			if strings.Contains(attack.name, "silent") {
				source.StallTimeout = 100 * time.Millisecond
			}
			v.refuses(t, source, attack.want)
			parts, err := filepath.Glob(filepath.Join(v.store.Dir, ".*.part"))
			require.NoError(t, err)
			for _, part := range parts {
				require.NoError(t, os.Remove(part))
			}
		})
	}
}

func layoutManifest(t *testing.T, file string) []byte {
	l, err := openLayout(file)
	require.NoError(t, err)
	defer l.Close()
	return l.data
}

func digestOf(t *testing.T, file string) string { return "sha256:" + hashOf(layoutManifest(t, file)) }

// FuzzManifest: whatever a manifest is, what is read of it has names of this package only and bounded sizes.
func FuzzManifest(f *testing.F) {
	i := Info{Name: "belt", Version: 4, Confidence: .4, Expires: time.Unix(2e9, 0), Files: []File{
		{Path: modelFile, Bytes: 5, SHA256: hashOf([]byte("model"))},
		{Path: labelsFile, Bytes: 4, SHA256: hashOf([]byte("nut\n"))},
		{Path: "plans/" + strings.Repeat("0", 8) + "-" + strings.Repeat("1", 32) + ".plan", Bytes: 4, SHA256: hashOf([]byte("plan"))},
	}}
	data, err := i.encodeManifest(descriptor(typeConfig, []byte("{}")))
	require.NoError(f, err)
	f.Add(data)
	f.Add([]byte("{}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		i, err := parseManifest(data)
		if err != nil {
			return
		}
		require.NoError(t, catalogue.CheckName(i.Name))
		require.Positive(t, i.Version)
		require.NotNil(t, i.file(modelFile))
		for at := range i.Files {
			file := &i.Files[at]
			require.True(t, filepath.IsLocal(file.Path), file.Path)
			require.Len(t, file.SHA256, 64)
			require.Positive(t, file.Bytes)
			require.LessOrEqual(t, file.Bytes, i.Bytes())
		}
		require.NoError(t, (&Summary{Bundle: *i}).Print(io.Discard))
	})
}

// FuzzLayout: whatever a file is, what is read of it is inside of it.
func FuzzLayout(f *testing.F) {
	m := &Make{Version: 1, Output: filepath.Join(f.TempDir(), "belt.tar")}
	manifest, err := (&Info{Name: "belt", Version: 1, Files: []File{{Path: modelFile, Bytes: 2, SHA256: hashOf(emptyConfig)}}}).
		encodeManifest(descriptor(typeConfig, emptyConfig))
	require.NoError(f, err)
	require.NoError(f, m.write(emptyConfig, manifest, nil))
	data, err := os.ReadFile(m.Output)
	require.NoError(f, err)
	f.Add(data)
	f.Add(data[:1500])
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := readLayout(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return
		}
		for name, at := range l.parts {
			require.True(t, filepath.IsLocal(name), name)
			require.LessOrEqual(t, at.offset+at.size, int64(len(data)))
		}
		require.LessOrEqual(t, len(l.data), len(data))
	})
}

// FuzzSignature: no text is a signature by a key that did not sign.
func FuzzSignature(f *testing.F) {
	public, _ := ReadKeys([]string{"RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3"}) // of minisign's author
	f.Add([]byte("untrusted comment: x\nRWQ=\ntrusted comment: y\nAA==\n"), []byte("manifest"))
	f.Fuzz(func(t *testing.T, text, manifest []byte) {
		_, err := public.verify(manifest, [][]byte{text})
		require.Error(t, err)
		require.Len(t, signers([][]byte{text}), 1)
	})
}

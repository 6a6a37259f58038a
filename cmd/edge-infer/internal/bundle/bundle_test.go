package bundle

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"aead.dev/minisign"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/catalogue"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/demo"
	"github.com/edge-infer/edge-infer/engine/onnx"
	"github.com/edge-infer/edge-infer/engine/tensorrt"
	"github.com/edge-infer/edge-infer/internal/testtool"
)

// pair is a pair of keys of minisign.
type pair struct {
	public string // the key
	secret string // its file
	key    minisign.PrivateKey
}

func newPair(t *testing.T) pair {
	public, secret, err := minisign.GenerateKey(nil)
	require.NoError(t, err)
	text, err := secret.MarshalText()
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "secret.key")
	require.NoError(t, os.WriteFile(file, append(text, '\n'), 0o600))
	return pair{public: public.String(), secret: file, key: secret}
}

func (p pair) keys(t *testing.T) Keys {
	keys, err := ReadKeys([]string{p.public})
	require.NoError(t, err)
	return keys
}

// detector is a small model.
func detector(t *testing.T) []byte {
	data, err := os.ReadFile("../../../../engine/enginetest/testdata/detector.onnx")
	require.NoError(t, err)
	return data
}

// write writes a file in a directory of its own.
func write(t *testing.T, name string, data []byte) string {
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, data, 0o600))
	return path
}

// make4 makes version 4 of the bundle belt, changed by change.
func make4(t *testing.T, change func(*Make)) string {
	m := &Make{
		Model: write(t, "best.onnx", detector(t)), Labels: write(t, "names.txt", []byte("nut\nbolt\n")), Preprocess: "ultralytics",
		Name: "belt", Version: 4, Confidence: 0.4, Licence: "Apache-2.0", Description: "parts on the belt",
		Output: filepath.Join(t.TempDir(), "belt.tar"),
	}
	if change != nil {
		change(m)
	}
	_, err := m.Run(t.Context())
	require.NoError(t, err)
	return m.Output
}

// serveRegistry serves an OCI registry on loopback, each request through wrap if that is not nil.
func serveRegistry(t *testing.T, referrers bool, wrap func(http.Handler) http.Handler) (host string) {
	handler := registry.New(registry.WithReferrersSupport(referrers), registry.Logger(log.New(io.Discard, "", 0)))
	if wrap != nil {
		handler = wrap(handler)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// push uploads a bundle and returns where it is.
func push(t *testing.T, file, host string) (location string) {
	t.Helper()
	location = host + "/models/belt:4"
	_, err := (&Push{File: file, To: Source{Location: location}}).Run(t.Context())
	require.NoError(t, err)
	return location
}

// store is the model store of the program in this test, empty.
func store(t *testing.T) catalogue.Store {
	t.Setenv("CACHE_DIRECTORY", t.TempDir())
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	s, err := catalogue.Open()
	require.NoError(t, err)
	return s
}

func pull(t *testing.T, s catalogue.Store, location string, keys Keys) (*PullResult, error) {
	return (&Pull{Source: Source{Location: location}, Store: s, Keys: keys}).Run(t.Context())
}

// A bundle is the same in a file, at an address and in a registry, with referrers or without, and runs by its name.
func TestPullFromEverywhere(t *testing.T) {
	k := newPair(t)
	signed := func(m *Make) { m.Sign = []string{newPair(t).secret, k.secret} }
	file := make4(t, signed)
	web := httptest.NewTLSServer(http.FileServer(http.Dir(filepath.Dir(file))))
	defer web.Close()
	for name, location := range map[string]string{
		"file": file, "address": web.URL + "/belt.tar", "registry": push(t, file, serveRegistry(t, true, nil)),
		"registry without referrers": push(t, file, serveRegistry(t, false, nil)), "image": write(t, "belt.swu", image(t, signed)),
	} {
		t.Run(name, func(t *testing.T) {
			s := store(t)
			source := Source{Location: location}
			if name == "address" {
				source.Transport = web.Client().Transport
			}
			p := &Pull{Source: source, Store: s, Keys: k.keys(t)}
			result, err := p.Run(t.Context())
			require.NoError(t, err)
			require.Equal(t, keyID(k.key.ID()), result.VerifiedBy)
			require.False(t, result.AlreadyPresent)
			var out bytes.Buffer
			require.NoError(t, result.Print(&out))
			require.Equal(t, "belt version 4 installed: "+s.Path("belt")+"\nsignature: valid, by key "+keyID(k.key.ID())+
				"\nrun it with edge-infer --model belt --confidence 0.4\n", out.String())

			path, labels, err := catalogue.Resolve("belt")
			require.NoError(t, err)
			require.Equal(t, s.Path("belt"), path)
			model, err := os.ReadFile(path)
			require.NoError(t, err)
			require.True(t, bytes.Equal(detector(t), model))
			names, err := os.ReadFile(labels)
			require.NoError(t, err)
			require.Equal(t, "nut\nbolt\n", string(names))
			preprocess, err := engine.ReadPreprocess(path)
			require.NoError(t, err)
			require.Equal(t, engine.Preprocess{Preset: "ultralytics"}, preprocess)
			left, err := filepath.Glob(filepath.Join(s.Dir, ".*.part"))
			require.NoError(t, err)
			require.Empty(t, left)

			result, err = p.Run(t.Context())
			require.NoError(t, err)
			require.True(t, result.AlreadyPresent)
			summary, err := (&Show{Source: Source{Location: "belt"}, Keys: k.keys(t)}).Run(t.Context())
			require.NoError(t, err)
			require.Equal(t, result.Bundle, summary.Bundle)
			summary, err = (&Show{Source: source, Keys: k.keys(t), Contents: true}).Run(t.Context())
			require.NoError(t, err)
			require.True(t, summary.Complete)
			listing, err := s.List()
			require.NoError(t, err)
			require.Equal(t, catalogue.Item{Entry: catalogue.Entry{Name: "belt"}, Installed: true}, listing.Models[len(listing.Models)-1])
			_, err = (&catalogue.Pull{Store: s, Source: file, SHA256: strings.Repeat("0", 64), Name: "belt"}).Run(t.Context())
			require.EqualError(t, err, "model belt is installed from a bundle (edge-infer model rm belt first, or another --name)")
			require.NoError(t, s.Remove("belt"))
			names2, err := s.Names()
			require.NoError(t, err)
			require.Empty(t, names2)
		})
	}
}

// The same contents give the same manifest, whatever the machine and the time, and a plain summary.
func TestMakeIsReproducible(t *testing.T) {
	var summaries []*Summary
	for range 2 {
		summary, err := (&Show{Source: Source{Location: make4(t, func(m *Make) { m.Expires = "2027-06-30" })}}).Run(t.Context())
		require.NoError(t, err)
		summaries = append(summaries, summary)
	}
	require.Equal(t, summaries[0].Bundle, summaries[1].Bundle)
	var out bytes.Buffer
	require.NoError(t, summaries[0].Print(&out))
	require.Equal(t, fmt.Sprintf(`name        belt
version     4
expires     2027-06-30T00:00:00Z
about       parts on the belt
licence     Apache-2.0
confidence  0.4
digest      %s
signature   none
file        model.onnx, %d bytes
file        labels.txt, 9 bytes
file        preprocess.yaml, 20 bytes
`, summaries[0].Bundle.Digest, len(detector(t))), out.String())
}

// A version replaces the one before, which stays on the disk, and is not replaced by an older one.
func TestVersionsGrow(t *testing.T) {
	s := store(t)
	k := newPair(t)
	bundle := func(version int64, labels string) string {
		return make4(t, func(m *Make) {
			m.Version = version
			m.Labels = write(t, "names.txt", []byte(labels))
			m.Sign = []string{k.secret}
		})
	}
	first := bundle(3, "nut\n")
	dirs := map[int64]string{}
	_, err := pull(t, s, first, nil)
	require.NoError(t, err)
	dirs[3] = s.Bundle("belt")
	for version := int64(4); version <= 5; version++ {
		_, err := pull(t, s, bundle(version, fmt.Sprintf("nut\nbolt %d\n", version)), nil)
		require.NoError(t, err)
		dirs[version] = s.Bundle("belt")
	}
	require.NoDirExists(t, dirs[3])
	require.DirExists(t, dirs[4], "a process may still open its files")
	_, err = pull(t, s, first, nil)
	require.EqualError(t, err, "bundle "+first+": version 3 of belt is older than the installed version 5 "+
		"(to go back: edge-infer model rm belt, then pull)")
	other := bundle(5, "bolt\n")
	_, err = pull(t, s, other, nil)
	require.EqualError(t, err, "bundle "+other+": another version 5 of belt is installed (ask its publisher for a higher version)")
	require.Equal(t, dirs[5], s.Bundle("belt"))
	versions, err := filepath.Glob(filepath.Join(filepath.Dir(dirs[5]), "version-*"))
	require.NoError(t, err)
	require.Len(t, versions, 2)

	// One changed bit of the model is repaired by the same version.
	latest := bundle(5, "nut\nbolt 5\n")
	damaged := detector(t)
	damaged = append([]byte{damaged[0] ^ 1}, damaged[1:]...)
	require.NoError(t, os.WriteFile(s.Path("belt"), damaged, 0o600))
	_, _, err = catalogue.Resolve("belt")
	require.ErrorContains(t, err, "(run edge-infer bundle pull again)")
	killed := filepath.Join(filepath.Dir(dirs[5]), "version-killed") // with what a killed pull leaves
	require.NoError(t, os.Mkdir(killed, 0o755))
	require.NoError(t, os.Symlink(killed, filepath.Join(s.Dir, ".belt.bundle")))
	_, err = pull(t, s, latest, nil)
	require.NoError(t, err)
	require.NoDirExists(t, killed)
	_, _, err = catalogue.Resolve("belt")
	require.NoError(t, err)

	require.NoError(t, s.Remove("belt"))
	_, err = pull(t, s, first, nil)
	require.NoError(t, err)
}

// A pull whose connection ends goes on where it ended.
func TestPullResumes(t *testing.T) {
	s := store(t)
	size := int64(len(demo.Model())) // more than servers keep back
	var limit atomic.Int64
	host := serveRegistry(t, true, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if most := limit.Load(); most > 0 && r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/blobs/") {
				w = &breaking{w, most}
			}
			next.ServeHTTP(w, r)
		})
	})
	location := push(t, make4(t, func(m *Make) { m.Model = write(t, "best.onnx", demo.Model()) }), host)
	limit.Store(size / 2)
	_, err := pull(t, s, location, nil)
	require.ErrorContains(t, err, "model.onnx: ")
	part, err := filepath.Glob(filepath.Join(s.Dir, ".*.part"))
	require.NoError(t, err)
	require.Len(t, part, 1)
	info, err := os.Stat(part[0])
	require.NoError(t, err)
	require.NotZero(t, info.Size())
	limit.Store(1 << 40)
	result, err := pull(t, s, location, nil)
	require.NoError(t, err)
	require.Equal(t, size-info.Size()+9+20, result.Received)
}

// Several pulls of one bundle install it once.
func TestPullsAtOnce(t *testing.T) {
	s := store(t)
	location := push(t, make4(t, nil), serveRegistry(t, true, nil))
	var pulls sync.WaitGroup
	var installed atomic.Int32
	for range 4 {
		pulls.Go(func() {
			result, err := pull(t, s, location, nil)
			if assert.NoError(t, err) && !result.AlreadyPresent {
				installed.Add(1)
			}
		})
	}
	pulls.Wait()
	require.EqualValues(t, 1, installed.Load())
	versions, err := filepath.Glob(filepath.Join(s.Dir, ".bundles", "belt", "version-*"))
	require.NoError(t, err)
	require.Len(t, versions, 1)
}

// breaking ends the connection after some bytes of a body.
type breaking struct {
	http.ResponseWriter
	most int64
}

func (b *breaking) Write(data []byte) (int, error) {
	if b.most < int64(len(data)) {
		_, _ = b.ResponseWriter.Write(data[:b.most])
		panic(http.ErrAbortHandler)
	}
	b.most -= int64(len(data))
	return b.ResponseWriter.Write(data)
}

// Credentials are those that docker login stored.
func TestCredentialsOfDocker(t *testing.T) {
	s := store(t)
	host := serveRegistry(t, true, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if user, password, _ := r.BasicAuth(); user != "maria" || password != "secret" {
				w.Header().Set("WWW-Authenticate", `Basic realm="models"`)
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			next.ServeHTTP(w, r)
		})
	})
	file := make4(t, nil)
	location := host + "/models/belt:4"
	refused := " " + location + ": " + host + " refuses access (docker login " + host + ", or check the name)"
	_, err := (&Push{File: file, To: Source{Location: location}}).Run(t.Context())
	require.EqualError(t, err, "push to"+refused)
	_, err = pull(t, s, location, nil)
	require.EqualError(t, err, "bundle"+refused)

	config := filepath.Join(os.Getenv("DOCKER_CONFIG"), "config.json")
	login := base64.StdEncoding.EncodeToString([]byte("maria:secret"))
	require.NoError(t, os.WriteFile(config, []byte(`{"auths":{"`+host+`":{"auth":"`+login+`"}}}`), 0o600))
	push(t, file, host)
	_, err = pull(t, s, location, nil)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(config, []byte("{"), 0o600))
	_, err = pull(t, s, location, nil)
	require.ErrorContains(t, err, "credentials of Docker: ")
}

// Without TLS nothing is requested from other machines, also not after a redirect.
func TestPlainHTTPIsForLoopback(t *testing.T) {
	s := store(t)
	const remedy = "http:// to files.example is neither encrypted nor authenticated (use https, or --plain-http)"
	_, err := pull(t, s, "http://files.example/belt.tar", nil)
	require.EqualError(t, err, "bundle http://files.example/belt.tar: "+remedy)
	web := httptest.NewTLSServer(http.RedirectHandler("http://files.example/belt.tar", http.StatusFound))
	defer web.Close()
	_, err = (&Pull{Source: Source{Location: web.URL, Transport: web.Client().Transport}, Store: s}).Run(t.Context())
	require.EqualError(t, err, "bundle "+web.URL+": "+remedy)

	// Where it is permitted, a registry is reached that way.
	host := serveRegistry(t, true, nil)
	file := make4(t, nil)
	redirect := roundTripper(func(r *http.Request) (*http.Response, error) {
		assert.Equal(t, "http", r.URL.Scheme)
		sent := r.Clone(r.Context())
		sent.URL.Host = host
		response, err := http.DefaultTransport.RoundTrip(sent)
		if err == nil {
			response.Request = r
		}
		return response, err
	})
	source := Source{Location: "registry.example/belt:4", PlainHTTP: true, Transport: redirect}
	_, err = (&Push{File: file, To: source}).Run(t.Context())
	require.NoError(t, err)
	_, err = (&Pull{Source: source, Store: s}).Run(t.Context())
	require.NoError(t, err)
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Plans are installed where they run, and only from a bundle that a key has signed.
func TestPlans(t *testing.T) {
	s := store(t)
	k := newPair(t)
	hash := hashOf(detector(t))
	plan := func(name, gpu string) string {
		data, err := tensorrt.EncodePlan(tensorrt.PlanFacts{Version: "10.3.0", GPU: gpu}, []byte("plan for "+gpu))
		require.NoError(t, err)
		return write(t, name, data)
	}
	orin := hash[:8] + "-" + strings.Repeat("0", 32) + ".plan"
	plans := []string{plan(orin, "Orin"), plan(hash[:8]+"-"+strings.Repeat("1", 32)+".plan", "T4")}
	file := make4(t, func(m *Make) {
		m.Plans = plans
		m.Sign = []string{k.secret}
		m.Calibration = write(t, "table", []byte("TRT-8601-EntropyCalibration2\nimages: 3c010a14\n"))
	})
	p := Pull{Source: Source{Location: file}, Store: s, Machine: func(context.Context) (Machine, error) {
		return Machine{TensorRT: "10.3.0", GPUs: []string{"Orin"}}, nil
	}}
	result, err := p.Run(t.Context())
	require.NoError(t, err)
	require.Empty(t, result.Plans)
	require.Equal(t, []string{"engine plans not installed: 2, because plans hold code and no --key verified the bundle"}, result.Notes)
	require.NoError(t, s.Remove("belt"))

	p.Keys = k.keys(t)
	result, err = p.Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{filepath.Join(filepath.Dir(s.Dir), orin)}, result.Plans)
	require.Equal(t, []string{"engine plans not installed: 1, which are for another GPU or version of TensorRT"}, result.Notes)
	want, err := os.ReadFile(plans[0])
	require.NoError(t, err)
	have, err := os.ReadFile(result.Plans[0])
	require.NoError(t, err)
	require.Equal(t, want, have)
	table, err := os.ReadFile(result.Calibration)
	require.NoError(t, err)
	require.Equal(t, "TRT-8601-EntropyCalibration2\nimages: 3c010a14\n", string(table))

	_, err = (&Make{
		Model: write(t, "best.onnx", detector(t)), Version: 1, Plans: []string{plan("best.plan", "Orin")},
		Output: filepath.Join(t.TempDir(), "b.tar"),
	}).Run(t.Context())
	require.ErrorContains(t, err, "is not one of the plan cache for this model (run edge-infer build without -o: it prints the file)")
}

// A layout that other tools packed, with directories and names of its own form, is a bundle as well.
func TestLayoutOfOtherTools(t *testing.T) {
	file := rewritten(t, make4(t, nil), func(all []entry) []entry {
		for at := range all {
			all[at].Name = "./" + all[at].Name
		}
		for _, name := range []string{"./ingest/", "./"} {
			all = append([]entry{{Header: tar.Header{Name: name, Typeflag: tar.TypeDir}}}, all...)
		}
		return all
	})
	summary, err := (&Show{Source: Source{Location: file}, Contents: true}).Run(t.Context())
	require.NoError(t, err)
	require.True(t, summary.Complete)
}

// External data of an ONNX model is embedded by make; pull refuses a bundle whose model needs other files.
func TestTensorsInFiles(t *testing.T) {
	model, err := onnx.Parse("best.onnx", detector(t))
	require.NoError(t, err)
	tensor := model.Proto.Graph.Initializer[0]
	path := write(t, "best.onnx.data", tensor.RawData)
	tensor.RawData = nil
	tensor.DataLocation = onnx.TensorProto_EXTERNAL.Enum()
	tensor.ExternalData = []*onnx.StringStringEntryProto{{Key: proto.String("location"), Value: proto.String("best.onnx.data")}}
	data, err := model.Bytes()
	require.NoError(t, err)
	require.ErrorContains(t, checkContent(modelFile, data), "it has tensors in files of their own, which no bundle has")
	path = strings.TrimSuffix(path, ".data")
	require.NoError(t, os.WriteFile(path, data, 0o600))
	s := store(t)
	_, err = pull(t, s, make4(t, func(m *Make) { m.Model = path }), nil)
	require.NoError(t, err)
	installed, err := onnx.Read(s.Path("belt"))
	require.NoError(t, err)
	require.NotEmpty(t, installed.Proto.Graph.Initializer[0].RawData)
}

// What cannot be packed is refused with its remedy, and nothing is written.
func TestMakeRefuses(t *testing.T) {
	t.Setenv("CACHE_DIRECTORY", t.TempDir())
	model := write(t, "best.onnx", detector(t))
	encrypted := make([]byte, 158)
	copy(encrypted, "EdScB2")
	for want, change := range map[string]func(*Make){
		"--version must be a whole number from 1, higher than that of the last bundle of this name": func(m *Make) { m.Version = 0 },
		"--confidence must be over 0 and at most 1":                                                 func(m *Make) { m.Confidence = 2 },
		`--expires "soon" must be a date or a time, such as 2027-06-30 or 2027-06-30T12:00:00Z`:     func(m *Make) { m.Expires = "soon" },
		"(set --name)": func(m *Make) { m.Name = "../belt" },
		"none.onnx: no such file or directory (name an ONNX file or a downloaded model, see edge-infer model list)": func(m *Make) {
			m.Model = "none.onnx"
		},
		"labels: the file names no class": func(m *Make) { m.Labels = write(t, "names.txt", nil) },
		"not ONNX: byte 3 fits no ONNX field (name the .onnx file that the exporter wrote)": func(m *Make) { m.Model = write(t, "text.onnx", []byte("hello")) },
		"is an engine plan (name its ONNX":                                                  func(m *Make) { m.Model = write(t, "b.plan", []byte("ftrt")) },
		"preprocess preset: \"yolo\" is not known":                                          func(m *Make) { m.Preprocess = "yolo" },
		"calibration cache: it is not JSON":                                                 func(m *Make) { m.Calibration = write(t, "c", []byte("hello")) },
		"annotation \"org.opencontainers.image.description\" has characters that cannot be printed": func(m *Make) {
			m.Description = "parts\nsignature   valid"
		},
		"signing key: open none.key: no such file or directory (minisign -G makes a pair)": func(m *Make) { m.Sign = []string{"none.key"} },
		"(name the secret key that minisign -G wrote)":                                     func(m *Make) { m.Sign = []string{model} },
		"no terminal (a pair without a password: minisign -G -W)": func(m *Make) {
			m.Sign = []string{write(t, "k", []byte(base64.StdEncoding.EncodeToString(encrypted)))}
			m.Password = func(string) (string, error) { return "", fmt.Errorf("no terminal") }
		},
	} {
		m := &Make{Model: model, Version: 1, Output: filepath.Join(t.TempDir(), "belt.tar")}
		change(m)
		_, err := m.Run(t.Context())
		assert.ErrorContains(t, err, want)
		assert.NoFileExists(t, m.Output)
	}
}

// The tool itself makes the keys and checks the signature.
func TestMinisign(t *testing.T) {
	tool := testtool.Program(t, "minisign")
	dir := t.TempDir()
	public, secret := filepath.Join(dir, "belt.pub"), filepath.Join(dir, "belt.key")
	output, err := exec.CommandContext(t.Context(), tool, "-G", "-W", "-p", public, "-s", secret).CombinedOutput()
	require.NoError(t, err, string(output))
	file := make4(t, func(m *Make) { m.Sign = []string{secret} })
	keys, err := ReadKeys([]string{public})
	require.NoError(t, err)
	_, err = pull(t, store(t), file, keys)
	require.NoError(t, err)

	manifest, text := filepath.Join(dir, "manifest"), filepath.Join(dir, "signature")
	require.NoError(t, os.WriteFile(manifest, layoutManifest(t, file), 0o600))
	require.NoError(t, os.WriteFile(text, signatureText(t, file), 0o600))
	verify := func() ([]byte, error) {
		return exec.CommandContext(t.Context(), tool, "-V", "-p", public, "-m", manifest, "-x", text).CombinedOutput()
	}
	output, err = verify()
	require.NoError(t, err, string(output))
	require.Contains(t, string(output), "edge-infer bundle belt version 4")
	require.NoError(t, os.WriteFile(manifest, []byte("{}"), 0o600))
	_, err = verify()
	require.Error(t, err)
}

func TestReadKeys(t *testing.T) {
	k := newPair(t)
	file := write(t, "belt.pub", []byte("untrusted comment: minisign public key 1\n"+k.public+"\r\n"))
	keys, err := ReadKeys([]string{k.public, file})
	require.NoError(t, err)
	require.True(t, keys[0].Equal(keys[1]))
	for _, wrong := range []string{"none.pub", k.secret, "RWabc"} {
		_, err = ReadKeys([]string{wrong})
		require.ErrorContains(t, err, "(name a public key of minisign, RW..., or its file)", wrong)
	}
}

// A location that is nothing is refused with what it could be.
func TestLocations(t *testing.T) {
	s := store(t)
	for location, want := range map[string]string{
		"belt.tar":               "no such file (name a file, an https:// address, or HOST/NAME:TAG in a registry)",
		"belt":                   "no such file, and no bundle of that name is installed (name a file, an https:// address, or HOST/NAME:TAG)",
		"https://":               "the address cannot be read (it must be https://HOST/PATH)",
		"registry.example/belt":  "not a file and not a bundle in a registry, HOST/NAME:TAG or HOST/NAME@sha256:DIGEST with a name in lower case",
		"registry.example/B:one": "not a file and not a bundle in a registry, HOST/NAME:TAG or HOST/NAME@sha256:DIGEST with a name in lower case",
		"/dev/null":              "not a regular file (name the file of edge-infer bundle make)",
	} {
		_, err := pull(t, s, location, nil)
		require.EqualError(t, err, "bundle "+location+": "+want)
	}
	host := serveRegistry(t, true, nil)
	_, err := pull(t, s, host+"/models/belt:4", nil)
	require.EqualError(t, err, "bundle "+host+"/models/belt:4: "+host+" has no such bundle (check its name and tag)")
	_, err = (&Push{File: make4(t, nil), To: Source{Location: host + "/models/belt@sha256:" + strings.Repeat("0", 64)}}).Run(t.Context())
	require.ErrorContains(t, err, "a tag is needed (HOST/NAME:TAG, such as :4)")
}

// An expired bundle is not installed; one that expires later is.
func TestExpiry(t *testing.T) {
	s := store(t)
	file := make4(t, func(m *Make) { m.Expires = "2027-06-30" })
	p := &Pull{Source: Source{Location: file}, Store: s, Now: func() time.Time { return time.Date(2027, 6, 30, 0, 0, 0, 0, time.UTC) }}
	_, err := p.Run(t.Context())
	require.EqualError(t, err, "bundle "+file+": version 4 of belt expired on 2027-06-30 "+
		"(ask its publisher for a newer one; this machine's clock is 2027-06-30T00:00:00Z)")
	p.Now = func() time.Time { return time.Date(2027, 6, 29, 23, 59, 59, 0, time.UTC) }
	_, err = p.Run(t.Context())
	require.NoError(t, err)
}

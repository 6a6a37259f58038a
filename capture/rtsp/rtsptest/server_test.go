package rtsptest

import (
	"bytes"
	"image"
	"image/jpeg"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/bluenviron/gortsplib/v5"
	"github.com/bluenviron/gortsplib/v5/pkg/base"
	"github.com/bluenviron/gortsplib/v5/pkg/description"
	"github.com/bluenviron/gortsplib/v5/pkg/format"
	"github.com/pion/rtp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/capture/rtsp"
	"github.com/edge-infer/edge-infer/internal/testtool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	patience = 3 * time.Minute // for what must come
	frames   = 50              // of the videos, at 25 fps with a key frame every 10
	bframes  = 2
)

// encode makes a video with ffmpeg, of 320x240 unless the arguments say otherwise.
func encode(t *testing.T, name string, arguments ...string) string {
	path := filepath.Join(t.TempDir(), name)
	arguments = slices.Concat([]string{"-v", "error", "-f", "lavfi", "-i", "testsrc=size=320x240:rate=25:duration=2", "-pix_fmt", "yuv420p"},
		arguments, []string{path})
	output, err := exec.Command(testtool.Program(t, "ffmpeg"), arguments...).CombinedOutput()
	require.NoError(t, err, string(output))
	return path
}

func h264Video(t *testing.T, arguments ...string) string {
	return encode(t, "h264.ts", slices.Concat([]string{"-c:v", "libx264", "-preset", "ultrafast", "-g", "10", "-bf", "2"}, arguments)...)
}

func h265Video(t *testing.T) string {
	return encode(t, "h265.ts", "-c:v", "libx265", "-preset", "ultrafast", "-x265-params", "log-level=error:keyint=10:bframes=2")
}

func start(t *testing.T, s *Server) *Server {
	require.NoError(t, s.Start())
	t.Cleanup(s.Close)
	return s
}

// viewer is a client that plays a path.
type viewer struct {
	t       *testing.T
	client  *gortsplib.Client
	format  format.Format
	packets chan received
	decode  func(packet *rtp.Packet) ([][]byte, error)
}

// received is a packet, with the time at which its image was taken, zero if it is not known yet.
type received struct {
	*rtp.Packet
	taken time.Time
}

// watch plays an address until the test ends.
func watch(t *testing.T, address string) *viewer {
	v, err := connect(t, address)
	require.NoError(t, err)
	return v
}

func connect(t *testing.T, address string) (*viewer, error) {
	at, err := base.ParseURL(address)
	require.NoError(t, err)
	tcp := gortsplib.ProtocolTCP
	v := &viewer{t: t, packets: make(chan received, 1<<16)}
	v.client = &gortsplib.Client{Scheme: at.Scheme, Host: at.Host, Protocol: &tcp, OnPacketsLost: func(uint64) {}}
	require.NoError(t, v.client.Start())
	t.Cleanup(v.client.Close)
	described, _, err := v.client.Describe(at)
	if err != nil {
		return nil, err
	}
	require.Len(t, described.Medias, 1)
	v.format = described.Medias[0].Formats[0]
	switch f := v.format.(type) {
	case *format.H264:
		d, err := f.CreateDecoder()
		require.NoError(t, err)
		v.decode = d.Decode
	case *format.H265:
		d, err := f.CreateDecoder()
		require.NoError(t, err)
		v.decode = d.Decode
	case *format.MJPEG:
		d, err := f.CreateDecoder()
		require.NoError(t, err)
		v.decode = func(p *rtp.Packet) ([][]byte, error) {
			image, err := d.Decode(p)
			return [][]byte{image}, err
		}
	}
	require.NoError(t, v.client.SetupAll(described.BaseURL, described.Medias))
	v.client.OnPacketRTPAny(func(m *description.Media, _ format.Format, p *rtp.Packet) {
		taken, _ := v.client.PacketNTP(m, p)
		v.packets <- received{p, taken}
	})
	_, err = v.client.Play(nil)
	return v, err
}

func (v *viewer) packet() received {
	v.t.Helper()
	select {
	case p := <-v.packets:
		return p
	case <-time.After(patience):
		require.Fail(v.t, "no packet")
		panic("unreachable")
	}
}

// unit waits for the next access unit and returns it with the last of its packets.
func (v *viewer) unit() ([][]byte, received) {
	v.t.Helper()
	for {
		p := v.packet()
		if parts, err := v.decode(p.Packet); err == nil {
			return parts, p
		}
	}
}

// number returns the index of an access unit in a video, -1 if it is not there as it is.
func (v *video) number(parts [][]byte) int {
	return slices.IndexFunc(v.units, func(u unit) bool { return slices.EqualFunc(u.parts, parts, slices.Equal) })
}

// TestPlays: the relay reads all paths once; each begins with a key frame, goes on after the end, and has B-frames by PTS.
func TestPlays(t *testing.T) {
	for name, make := range map[string]func(t *testing.T) string{
		"H.264": func(t *testing.T) string { return h264Video(t) },
		"H.265": h265Video,
	} {
		t.Run(name, func(t *testing.T) {
			const paths, rate = 5, 8
			s := start(t, &Server{Files: []string{make(t)}, Paths: paths, Rate: rate})
			file, err := load(s.Files[0], ParametersEverywhere, 0)
			require.NoError(t, err)
			require.Len(t, file.units, frames)
			require.GreaterOrEqual(t, file.reorder, int64(bframes)*file.frame())
			for path := range paths {
				u, err := capture.ParseURI(s.URL(path))
				require.NoError(t, err)
				camera, err := rtsp.Open(t.Context(), u, rtsp.Options{OpenTimeout: patience, ReadTimeout: patience})
				require.NoError(t, err)
				relay, err := camera.Serve()
				require.NoError(t, err)
				checkPlays(t, watch(t, relay.Address()), file, rate)
				assert.Equal(t, 1, s.Stats(path).Connections)
				assert.Equal(t, 1, s.Stats(path).Playing)
				assert.Zero(t, s.Stats(path).Dropped)
				require.NoError(t, camera.Close())
			}
		})
	}
}

// checkPlays checks two rounds of a file.
func checkPlays(t *testing.T, v *viewer, file *video, rate int64) {
	parts, first := v.unit()
	number := file.number(parts)
	require.Contains(t, file.keys, number)
	want := func(n int) uint32 {
		n += number
		u := file.units[n%frames]
		return first.Timestamp + uint32((int64(n/frames)*file.length+u.pts-file.units[number].pts)/rate)
	}
	for n := 1; n < 2*frames; n++ {
		parts, p := v.unit()
		require.Equal(t, (number+n)%frames, file.number(parts))
		require.InDelta(t, want(n), p.Timestamp, 1, "unit %d", n)
	}
}

// TestSenderReports: the time at which an image was taken is never in the future, and agrees with its timestamp.
func TestSenderReports(t *testing.T) {
	s := start(t, &Server{Files: []string{h264Video(t)}, Rate: 2})
	v := watch(t, s.URL(0))
	_, first := v.unit()
	for first.taken.IsZero() { // the report follows the first packet
		_, first = v.unit()
	}
	for range 2 * frames {
		_, p := v.unit()
		between := time.Duration(int32(p.Timestamp-first.Timestamp)) * time.Second / ticksPerSecond
		assert.InDelta(t, between, p.taken.Sub(first.taken), float64(time.Millisecond))
		assert.False(t, p.taken.After(time.Now().Add(time.Millisecond)), "%s in the future", time.Until(p.taken)) // reports are rounded
	}
}

// TestOffsets: no two paths are at the same place of a group of pictures while there are as many places.
func TestOffsets(t *testing.T) {
	file, err := load(h264Video(t), ParametersEverywhere, 0)
	require.NoError(t, err)
	var places []int
	for path := range 10 {
		places = append(places, file.offset(path, 10)%10)
	}
	slices.Sort(places)
	assert.Equal(t, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, places)
	for path := range 1000 {
		require.Less(t, file.offset(path, 1000), frames)
	}
}

// TestParameters: parameter sets come where they should.
func TestParameters(t *testing.T) {
	path := h264Video(t)
	for parameters, want := range map[Parameters]struct{ described, sent bool }{
		ParametersEverywhere: {true, true},
		ParametersInSDP:      {true, false},
		ParametersInBand:     {false, true},
	} {
		s := start(t, &Server{Files: []string{path}, Rate: 8, Parameters: parameters})
		v := watch(t, s.URL(0))
		assert.Equal(t, want.described, v.format.(*format.H264).SPS != nil)
		assert.Equal(t, want.described, v.format.(*format.H264).PPS != nil)
		c := &h264Codec{}
		for range frames {
			parts, _ := v.unit()
			var sets []int
			for _, part := range parts {
				if at := c.set(part); at >= 0 {
					sets = append(sets, at)
				}
			}
			if want.sent && c.key(parts) {
				assert.Equal(t, []int{0, 1}, sets)
			} else {
				assert.Empty(t, sets)
			}
		}
	}
}

// TestJoinAnywhere: the first client gets the next unit, whatever it is. With a key frame in 50 this is the only one that begins with one.
func TestJoinAnywhere(t *testing.T) {
	s := start(t, &Server{Files: []string{h264Video(t, "-g", "50")}, Rate: 4, JoinAnywhere: true})
	file, err := load(s.Files[0], ParametersEverywhere, 0)
	require.NoError(t, err)
	require.Len(t, file.keys, 1)
	require.Eventually(t, func() bool {
		v := watch(t, s.URL(0))
		parts, _ := v.unit()
		v.client.Close()
		return file.number(parts) > 0
	}, patience, time.Millisecond)
}

// TestImages: JPEG images have the pixels of the file, one after another.
func TestImages(t *testing.T) {
	path := encode(t, "video.mjpeg", "-c:v", "mjpeg", "-f", "mjpeg", "-huffman", "default")
	s := start(t, &Server{Files: []string{path}, ImageRate: 200})
	file, err := load(path, ParametersEverywhere, 200)
	require.NoError(t, err)
	require.Len(t, file.units, frames)
	pixels := func(data []byte) image.Image {
		decoded, err := jpeg.Decode(bytes.NewReader(data))
		require.NoError(t, err)
		return decoded
	}
	v := watch(t, s.URL(0))
	parts, before := v.unit()
	first := slices.IndexFunc(file.units, func(u unit) bool { return assert.ObjectsAreEqual(pixels(u.parts[0]), pixels(parts[0])) })
	require.GreaterOrEqual(t, first, 0)
	for n := 1; n < 2*frames; n++ {
		parts, p := v.unit()
		require.Equal(t, pixels(file.units[(first+n)%frames].parts[0]), pixels(parts[0]), "image %d", n)
		require.InDelta(t, before.Timestamp+ticksPerSecond/200, p.Timestamp, 1)
		before = p
	}
}

// TestCredentials: the right user is let in by either method.
func TestCredentials(t *testing.T) {
	path := h264Video(t)
	for _, authentication := range []Authentication{AnyAuthentication, BasicAuthentication, DigestAuthentication} {
		s := start(t, &Server{Files: []string{path}, User: "admin", Password: "secret", Authentication: authentication})
		watch(t, "rtsp://admin:secret@"+s.Listening()+"/0").unit()
		for _, user := range []string{"", "admin:wrong@", "root:secret@"} {
			_, err := connect(t, "rtsp://"+user+s.Listening()+"/0")
			require.Error(t, err)
		}
		assert.Equal(t, 4, s.Stats(0).Connections)
		assert.LessOrEqual(t, s.Stats(0).Playing, 1)
		_, err := connect(t, s.URL(1))
		require.ErrorContains(t, err, "404")
	}
}

// TestTwoFiles: the paths play the files in turn, and a closed server can be closed again.
func TestTwoFiles(t *testing.T) {
	s := start(t, &Server{Files: []string{h264Video(t), h265Video(t)}, Paths: 3})
	assert.IsType(t, &format.H264{}, watch(t, s.URL(0)).format)
	assert.IsType(t, &format.H265{}, watch(t, s.URL(1)).format)
	assert.IsType(t, &format.H264{}, watch(t, s.URL(2)).format)
	s.Close()
	s.Close()
	(&Server{}).Close()
}

func TestStartErrors(t *testing.T) {
	video := h264Video(t)
	taken := start(t, &Server{Files: []string{video}})
	other := h265Video(t)
	garbage := filepath.Join(t.TempDir(), "garbage.mjpeg")
	require.NoError(t, exec.Command("cp", video, garbage).Run())
	for want, s := range map[string]*Server{
		"no file":                                                            {},
		"0.0.0.0 is not a loopback address":                                  {Files: []string{video}, Address: "0.0.0.0:0"},
		"address 1: missing port in address":                                 {Files: []string{video}, Address: "1"},
		"open /none: no such file or directory":                              {Files: []string{"/none"}},
		"a number is out of range":                                           {Files: []string{video}, Faults: Faults{LoseFraction: 2}},
		"read " + garbage + ": image 0 is not JPEG":                          {Files: []string{garbage}},
		video + " has H.264, and " + other + " has H.265":                    {Files: []string{video}, Second: other},
		"listen tcp " + taken.Listening() + ": bind: address already in use": {Files: []string{video}, Address: taken.Listening()},
	} {
		require.EqualError(t, s.Start(), "start RTSP server: "+want)
		s.Close()
	}
}

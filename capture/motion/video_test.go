package motion_test

import (
	"encoding/csv"
	"flag"
	"image"
	"maps"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gocv.io/x/gocv"

	"github.com/edge-infer/edge-infer/capture/motion"
	"github.com/edge-infer/edge-infer/engine"
)

var (
	videoPath = flag.String("video", "", "video of pedestrians before a camera that stands still")
	truthPath = flag.String("truth", "", "who is where in it, in the form of the MOTChallenge")
)

// cutout is a person in one image of a video: the pixels of the box.
type cutout struct {
	x, y int
	seen engine.Image
}

// entering is how many images of a person are an entry.
const entering = 12

// TestNoPedestrianOfAFilmIsMissed has each person of a real video come alone into the empty scene, which is the video's median, with the
// noise of a sensor: as they are, mirrored, as small as a half, and paler, which makes 500 of some twenty. None may come in unseen.
func TestGateMissesNoPedestrian(t *testing.T) {
	if *videoPath == "" || *truthPath == "" {
		t.Skip("-video and -truth name none: opencv-doc's vtest.avi and the truth that cmd/track-benchmark/sequences.py writes")
	}
	empty, people := readPedestrians(t, *videoPath, *truthPath)
	f := newVideo(empty, 3)
	g := gate(motion.Settings{Sensitivity: motion.DefaultSensitivity})
	stills(g, f, 5*rate, nil)
	entries, missed, images, unseen, idle := 0, 0, 0, 0, 0
	for shrink := range 3 {
		for pale := range 5 {
			for mirrored := range 2 {
				for _, person := range people {
					looked := false
					for _, s := range person[:min(entering, len(person))] {
						im := f.next()
						s.draw(im, 1+0.5*float64(shrink), 1-0.15*float64(pale), mirrored == 1)
						still := g.Still(*im, f.at)
						looked = looked || !still
						images++
						if still {
							unseen++
						}
					}
					entries++
					if !looked {
						missed++
					}
					idle += stills(g, f, 5*rate/2, nil)
				}
			}
		}
	}
	t.Logf("%d people in %d images: %d missed, %d images with one not looked at; %d of %d without anybody left out", entries, images,
		missed, unseen, idle, 5*rate/2*entries)
	assert.GreaterOrEqual(t, entries, 500)
	assert.Zero(t, missed)
	assert.Positive(t, idle)
}

// draw paints a person at the same feet, so much smaller and paler.
func (s *cutout) draw(im *engine.Image, smaller, strength float64, mirrored bool) {
	width, height := int(float64(s.seen.Width)/smaller), int(float64(s.seen.Height)/smaller)
	left, top := s.x+(s.seen.Width-width)/2, s.y+s.seen.Height-height
	for y := range height {
		for x := range width {
			fromX, fromY := min(int(float64(x)*smaller), s.seen.Width-1), min(int(float64(y)*smaller), s.seen.Height-1)
			toX, toY := left+x, top+y
			if mirrored {
				toX = im.Width - 1 - toX
			}
			if toX < 0 || toY < 0 || toX >= im.Width || toY >= im.Height {
				continue
			}
			for c := range 3 {
				p := &im.Data[toY*im.Stride+3*toX+c]
				*p = byte(float64(*p) + strength*(float64(s.seen.Data[fromY*s.seen.Stride+3*fromX+c])-float64(*p)))
			}
		}
	}
}

// readPedestrians returns the median of a video's images and the paths of all pedestrians, at half the video's size.
func readPedestrians(t *testing.T, path, truth string) (empty engine.Image, people [][]cutout) {
	t.Helper()
	video, err := gocv.VideoCaptureFile(path)
	require.NoError(t, err)
	defer video.Close()
	boxes := readTruth(t, truth)
	ways := map[int][]cutout{}
	var samples [][]byte
	img := gocv.NewMat()
	defer img.Close()
	for frame := 1; video.Read(&img); frame++ {
		gocv.Resize(img, &img, image.Point{}, 0.5, 0.5, gocv.InterpolationArea)
		im := engine.Image{Data: img.ToBytes(), Width: img.Cols(), Height: img.Rows(), Stride: 3 * img.Cols(), Format: engine.BGR}
		if frame%20 == 1 {
			samples = append(samples, im.Data)
		}
		empty = im
		for id, b := range boxes[frame] {
			x0, y0, x1, y1 := max(0, b[0]), max(0, b[1]), min(im.Width, b[2]), min(im.Height, b[3])
			if x1 <= x0 || y1 <= y0 {
				continue
			}
			s := cutout{x0, y0, engine.Image{Width: x1 - x0, Height: y1 - y0, Stride: 3 * (x1 - x0), Format: engine.BGR}}
			for y := y0; y < y1; y++ {
				s.seen.Data = append(s.seen.Data, im.Data[y*im.Stride+3*x0:y*im.Stride+3*x1]...)
			}
			ways[id] = append(ways[id], s)
		}
	}
	require.NotEmpty(t, samples)
	empty.Data = make([]byte, len(samples[0]))
	values := make([]byte, len(samples))
	for i := range empty.Data {
		for j := range samples {
			values[j] = samples[j][i]
		}
		slices.Sort(values)
		empty.Data[i] = values[len(values)/2]
	}
	for _, id := range slices.Sorted(maps.Keys(ways)) {
		people = append(people, ways[id])
	}
	return empty, people
}

// readTruth returns the boxes of all pedestrians by frame, from 1, and identity, at half the video's size.
func readTruth(t *testing.T, path string) map[int]map[int][4]int {
	t.Helper()
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	require.NoError(t, err)
	all := map[int]map[int][4]int{}
	for _, row := range rows {
		var v [6]float64
		for i := range v {
			v[i], err = strconv.ParseFloat(row[i], 64)
			require.NoError(t, err)
		}
		if all[int(v[0])] == nil {
			all[int(v[0])] = map[int][4]int{}
		}
		all[int(v[0])][int(v[1])] = [4]int{int(v[2]) / 2, int(v[3]) / 2, int(v[2]+v[4]) / 2, int(v[3]+v[5]) / 2}
	}
	return all
}

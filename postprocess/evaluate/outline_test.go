package evaluate

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/postprocess"
)

func TestFourCornersAreOrientedBoxAndMask(t *testing.T) {
	// 20 by 10 pixels around 50, 50 of an image of 100x200, rotated by 30 degrees.
	o := postprocess.OrientedBox{X: 50, Y: 50, Width: 20, Height: 10, Angle: math.Pi / 6}
	var shares []float64
	corners := o.Corners()
	for _, i := range []int{2, 1, 0, 3} { // clockwise from the top left
		shares = append(shares, float64(corners[i].X)/100, float64(corners[i].Y)/200)
	}
	truth := lineFormat{}.truth(shares, 100, 200)
	require.InDelta(t, 50, truth.Oriented.X, 1e-4)
	require.InDelta(t, 20, truth.Oriented.Width, 1e-4)
	require.InDelta(t, 10, truth.Oriented.Height, 1e-4)
	require.InDelta(t, math.Pi/6, truth.Oriented.Angle, 1e-5)
	require.InDelta(t, 200, truth.Mask.Runs().Area(), 12)
	require.InDelta(t, o.Bounds().X1, truth.X1, 1e-3)
}

func TestKeypointsFollowTheirBox(t *testing.T) {
	text := []byte("3 0.5 0.5 0.2 0.4 0.1 0.2 2 0.5 0.25 0\n")
	truths, err := newLineFormat([]int{2, 3}).parse("a.txt", text, 100, 200)
	require.NoError(t, err)
	require.Equal(t, []postprocess.Keypoint{{X: 10, Y: 40, Score: 1}, {X: 50, Y: 50}}, truths[0].Keypoints)
	require.Equal(t, postprocess.Box{X1: 40, Y1: 60, X2: 60, Y2: 140}, truths[0].Box)
	require.Nil(t, truths[0].Mask)
	_, err = newLineFormat([]int{2, 3}).parse("a.txt", []byte("3 0.5 0.5 0.2 0.4 0.1 0.2 3 0.5 0.25 0\n"), 100, 200)
	require.EqualError(t, err, `a.txt:1: "3" is not a share of the image from 0 to 1`)
	truths, err = newLineFormat([]int{4, 2}).parse("a.txt", text, 100, 200)
	require.NoError(t, err)
	require.Nil(t, truths[0].Keypoints, "of another number of points only the box is read")
}

func TestLabelsFollowImageOrientation(t *testing.T) {
	text := []byte("0 0.1 0.1 0.5 0.1 0.5 0.5 0.1 0.5\n")
	truths, err := lineFormat{}.parse("a.txt", text, 100, 200)
	require.NoError(t, err)
	p := Image{Width: 100, Height: 200, shares: true, Truths: truths}
	require.NoError(t, p.Fit(200, 100))
	require.Equal(t, 200, p.Truths[0].Mask.Width)
	require.Equal(t, 80*40, p.Truths[0].Mask.Runs().Area())
	require.InDelta(t, 80, p.Truths[0].Oriented.Width, 1e-4)
}

// TestKeypointSigmas: a data.yaml may contain keypoint names and OKS sigmas.
func TestKeypointSigmas(t *testing.T) {
	read := func(more string) (*description, lineFormat, error) {
		d, err := parseDescription("data.yaml", []byte("names: [fork, crane]\nkpt_shape: [2, 3]\n"+more))
		require.NoError(t, err)
		f, err := d.lines()
		return d, f, err
	}
	similar := func(f lineFormat) float64 {
		truths, err := f.parse("a.txt", []byte("0 0.5 0.5 0.2 0.4 0.1 0.2 2 0.5 0.25 2\n"), 100, 200)
		require.NoError(t, err)
		return keypointSimilarity([]postprocess.Keypoint{{X: 11, Y: 40}, {X: 50, Y: 50}}, &truths[0])
	}
	d, usual, err := read("kpt_names: {1: [hook, boom]}\n")
	require.NoError(t, err)
	require.Equal(t, [][]string{{"hook", "boom"}}, d.pointNames())
	_, strict, err := read("kpt_oks_sigmas: [0.01, 0.5]\n")
	require.NoError(t, err)
	// The box has 20x80 pixels, of which Ultralytics takes 0.53 for the object; the first point is one pixel off.
	scale := 0.53 * 20 * 80
	require.InDelta(t, (math.Exp(-1/(2*scale))+1)/2, similar(usual), 1e-9)
	require.InDelta(t, (math.Exp(-1/(0.02*0.02*2*scale))+1)/2, similar(strict), 1e-6)
	for _, wrong := range []string{"[0.1]", "[0.1, 0]", "[0.1, .nan]", "[-1, 1]"} {
		_, _, err := read("kpt_oks_sigmas: " + wrong + "\n")
		require.ErrorContains(t, err, "are not a positive number for each of 2 keypoints", wrong)
	}
}

func TestCheckKeypoints(t *testing.T) {
	d := &Dataset{Keypoints: [][]string{{"hook", "boom"}}}
	require.NoError(t, d.CheckKeypoints(nil))
	require.NoError(t, d.CheckKeypoints([][]string{{"tip", "mast"}, {"hook", "boom"}}))
	require.NoError(t, (&Dataset{}).CheckKeypoints([][]string{{"boom", "hook"}}))
	require.EqualError(t, d.CheckKeypoints([][]string{{"boom", "hook"}}),
		"the dataset labels keypoints hook, boom, the network gives boom, hook (they must be the same, in the same order)")
}

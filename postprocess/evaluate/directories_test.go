package evaluate

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/postprocess"
)

const instances = `{"categories":[{"id":1,"name":"person"},{"id":90,"name":"toothbrush"}],
"images":[{"id":5,"file_name":"a.png","width":20,"height":10}],
"annotations":[{"image_id":5,"category_id":90,"bbox":[1,2,3,4]}]}`

// A directory of COCO is read as it is unpacked, wherever its images are beside the annotations.
func TestReadCOCODirs(t *testing.T) {
	for _, place := range []string{"val2017/a.png", "images/val2017/a.png", "images/a.png", "a.png", "annotations/a.png"} {
		dir := filepath.Join(t.TempDir(), "coco[1]")
		write(t, dir, "annotations/instances_val2017.json", instances)
		write(t, dir, "annotations/person_keypoints_val2017.json", "{}")
		write(t, dir, "annotations/instances_train2017.json", strings.ReplaceAll(instances, "a.png", "b.png"))
		writeImage(t, dir, place, 20, 10)
		writeImage(t, dir, "train2017/b.png", 20, 10)
		for _, path := range []string{dir, filepath.Join(dir, "annotations"), filepath.Join(dir, "annotations", "instances_val2017.json")} {
			dataset, err := ReadDataset(path, "")
			require.NoError(t, err, place)
			assert.Equal(t, filepath.Join(dir, place), dataset.Images[0].Path)
			assert.Equal(t, []int64{1, 90}, dataset.Categories)
			assert.Equal(t, 1, dataset.Images[0].Truths[0].Class)
		}
		dataset, err := ReadDataset(dir, "train")
		require.NoError(t, err)
		assert.Equal(t, filepath.Join(dir, "train2017", "b.png"), dataset.Images[0].Path)
		_, err = ReadDataset(dir, "test")
		assert.EqualError(t, err, "read dataset: "+filepath.Join(dir, "annotations")+
			": there is no test, only train2017, val2017 (choose one with --split)")
	}
	dir := t.TempDir()
	write(t, dir, "annotations/instances_val2014.json", instances)
	write(t, dir, "annotations/instances_val2017.json", instances)
	_, err := ReadDataset(dir, "")
	assert.EqualError(t, err, "read dataset: "+filepath.Join(dir, "annotations")+": there are val2014 and val2017 (choose one with --split)")
	_, err = ReadDataset(dir, "val2014")
	assert.ErrorContains(t, err, "1 of the 1 images of "+filepath.Join(dir, "annotations",
		"instances_val2014.json")+" are missing, such as a.png")
}

// COCO labels people's keypoints in a file of its own, which is read where it is named or alone. Beside the file of all objects it is
// named to whoever measures keypoints.
func TestReadCOCOKeypoints(t *testing.T) {
	const people = `{"categories":[{"id":1,"name":"person","keypoints":["nose"]}],
"images":[{"id":5,"file_name":"a.png","width":20,"height":10}],
"annotations":[{"image_id":5,"category_id":1,"bbox":[1,2,3,4],"keypoints":[2,3,2],"area":9}]}`
	dir := t.TempDir()
	writeImage(t, dir, "val2017/a.png", 20, 10)
	write(t, dir, "annotations/person_keypoints_val2017.json", people)
	file := filepath.Join(dir, "annotations", "person_keypoints_val2017.json")
	check := func(path string) {
		dataset, err := ReadDataset(path, "")
		require.NoError(t, err)
		assert.Equal(t, filepath.Join(dir, "val2017", "a.png"), dataset.Images[0].Path)
		assert.Len(t, dataset.Images[0].Truths[0].Keypoints, 1)
		assert.NoError(t, dataset.CheckKeypoints([][]string{{"nose"}}))
	}
	check(dir)
	write(t, dir, "annotations/instances_val2017.json", instances)
	check(file)
	dataset, err := ReadDataset(dir, "")
	require.NoError(t, err)
	assert.Len(t, dataset.Labels, 2, "all objects")
	assert.EqualError(t, dataset.CheckKeypoints([][]string{{"nose"}}), filepath.Join(dir, "annotations", "instances_val2017.json")+
		" labels no keypoints (name the file that does: "+file+")")
}

// A data.yaml of Ultralytics leads to its images by directories and list files, also one written on another machine.
func TestReadUltralytics(t *testing.T) {
	dir := t.TempDir()
	writeImage(t, dir, "images/val/a.png", 200, 100)
	writeImage(t, dir, "images/val/deep/b.png", 20, 10)
	writeImage(t, dir, "images/train/c.png", 20, 10)
	write(t, dir, "labels/val/a.txt", "1 0.5 0.5 0.1 0.2\n1 0.5 0.5 0.1 0.2\n0 0.1 0.1 0.3 0.1 0.3 0.4\n")
	write(t, dir, "labels/train/c.txt", "")
	write(t, dir, "lists/val.txt", "../images/val/a.png\n\n"+filepath.Join(dir, "images/val/deep/b.png")+"\n")
	for _, text := range []string{
		"path: .\ntrain: images/train\nval: images/val\nnames: [bolt, nut]\n",
		"path: ../elsewhere\ntrain: images/train\nval: images/val\nnames:\n  0: bolt\n  1: nut\n",
		"train: ../images/train\nval: ../images/val\nnc: 2\nnames: ['bolt', 'nut']\nroboflow: {version: 1}\n",
		"val: lists/val.txt\nnames: [bolt, nut]\n",
		"val:\n  - images/val\nnames: [bolt, nut]\ndownload: |\n  [[[[\n",
		"path: " + dir + "\nval: images/val\nnames: [bolt, nut]\n",
	} {
		write(t, dir, "data.yaml", text)
		for _, path := range []string{dir, filepath.Join(dir, "data.yaml")} {
			dataset, err := ReadDataset(path, "")
			require.NoError(t, err, text)
			assert.Equal(t, []string{"bolt", "nut"}, dataset.Labels)
			require.Len(t, dataset.Images, 2)
			assert.Equal(t, filepath.Join(dir, "images/val/a.png"), dataset.Images[0].Path)
			assert.Equal(t, []Truth{
				{Box: postprocess.Box{X1: 90, Y1: 40, X2: 110, Y2: 60}, Class: 1},
				{Box: postprocess.Box{X1: 20, Y1: 10, X2: 60, Y2: 40}, Class: 0},
			}, boxes(dataset.Images[0].Truths), "a line that comes twice counts once, an outline by its box")
			assert.Empty(t, dataset.Images[1].Truths)
		}
	}
	for _, c := range []struct{ text, split, want string }{
		{"names: [a]\n", "", ": no labels found: it names neither val nor train"},
		{"val: nowhere\n", "", ": val: no such directory or list: " + filepath.Join(dir, "nowhere")},
		{
			"val: lists/bad.txt\n", "", ": val: " + filepath.Join(dir, "lists/bad.txt") + ":2: no such image: " +
				filepath.Join(dir, "lists/gone.png"),
		},
		{"val: images/val\n", "train", ": there is no train, only val (choose one with --split)"},
		{"val: images/val\nnames: 3\n", "", ": names are a list of labels, or a map from class numbers to labels"},
		{"val: images/val\nnames: {0: a, 2: b}\n", "", ": names have class 2, but there are 2 of them from 0 on"},
		{"val: {a: b}\n", "", ": a part of the dataset is a directory, a list file, or a list of them"},
		{strings.Repeat("[", 1000), "", " is not a dataset description: over 262144 bytes, or nested too deeply"},
		{strings.Repeat("- ", 1000), "", " is not a dataset description: over 262144 bytes, or nested too deeply"},
	} {
		write(t, dir, "data.yaml", c.text)
		write(t, dir, "lists/bad.txt", "\ngone.png\n")
		_, err := ReadDataset(dir, c.split)
		assert.EqualError(t, err, "read dataset: "+filepath.Join(dir, "data.yaml")+c.want, c.text)
	}
	// Keypoints follow the box of their line.
	write(t, dir, "data.yaml", "val: images/val\nkpt_shape: [2, 2]\n")
	write(t, dir, "labels/val/a.txt", "1 0.5 0.5 0.1 0.2 0.1 0.1 0.2 0.2\n")
	dataset, err := ReadDataset(dir, "")
	require.NoError(t, err)
	assert.Equal(t, postprocess.Box{X1: 90, Y1: 40, X2: 110, Y2: 60}, dataset.Images[0].Truths[0].Box)
}

// images/ and labels/ may have a directory for each part of the dataset.
func TestReadYOLOParts(t *testing.T) {
	dir := t.TempDir()
	writeImage(t, dir, "images/train2017/a.png", 20, 10)
	write(t, dir, "labels/train2017/a.txt", "0 0.5 0.5 0.1 0.2\n")
	dataset, err := ReadDataset(dir, "")
	require.NoError(t, err)
	assert.Len(t, dataset.Images[0].Truths, 1)
	_, err = ReadDataset(dir, "val")
	assert.EqualError(t, err, "read dataset: "+filepath.Join(dir, "images")+": there is no val, only train2017 (choose one with --split)")
	_, err = ReadDataset(filepath.Join(dir, "nowhere"), "")
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = ReadDataset(filepath.Join(dir, "images/train2017/a.png"), "")
	assert.ErrorIs(t, err, ErrNoLabels)
}

// The images of a dataset often lie on another disk: images/, its parts and the images may be links.
func TestReadYOLOFollowsLinks(t *testing.T) {
	disk := t.TempDir()
	writeImage(t, disk, "images/a.png", 20, 10)
	for _, link := range []string{"images", "images/val", "images/val/a.png"} {
		t.Run(link, func(t *testing.T) {
			dir := t.TempDir()
			target := filepath.Join(disk, "images")
			labels := "labels/a.txt"
			if link != "images" {
				require.NoError(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(link)), 0o700))
				labels = "labels/val/a.txt"
			}
			if filepath.Ext(link) != "" {
				target = filepath.Join(target, "a.png")
			}
			require.NoError(t, os.Symlink(target, filepath.Join(dir, link)))
			write(t, dir, labels, "0 0.5 0.5 0.1 0.2\n")
			dataset, err := ReadDataset(dir, "")
			require.NoError(t, err)
			require.Len(t, dataset.Images, 1)
			assert.Len(t, dataset.Images[0].Truths, 1)
		})
	}
}

// Class names are the same in the usual spellings.
func TestLabelsMatchInOtherSpellings(t *testing.T) {
	d := &Dataset{
		Labels: []string{"Traffic_Light", "aeroplane", "tvmonitor"}, Images: []Image{{Truths: []Truth{{Class: 0}, {Class: 1}, {Class: 2}}}},
	}
	require.NoError(t, d.Relabel([]string{"tv", "traffic light", "airplane"}, nil))
	assert.Equal(t, []Truth{{Class: 1}, {Class: 2}, {Class: 0}}, d.Images[0].Truths)
}

// An image that decoding turns keeps labels that are shares of its sides, and none in pixels.
func TestLabelsFitTheDecodedImage(t *testing.T) {
	p := Image{Path: "a.jpg", Width: 200, Height: 100, Truths: []Truth{{Box: postprocess.Box{X1: 20, Y1: 10, X2: 60, Y2: 40}}}}
	require.NoError(t, p.Fit(200, 100))
	assert.EqualError(t, p.Fit(100, 200), "a.jpg is 100x200, its labels are for 200x100 (are these the labels of other images?)")
	p.shares = true
	require.NoError(t, p.Fit(100, 200))
	assert.Equal(t, postprocess.Box{X1: 10, Y1: 20, X2: 30, Y2: 80}, p.Truths[0].Box)
}

func FuzzDescription(f *testing.F) {
	f.Add([]byte("path: .\nval: images/val\nnames: {0: a, 1: b}\nkpt_shape: [17, 3]\n"))
	f.Add([]byte("train: [a, b]\nnames: [x]\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		d, err := parseDescription("data.yaml", text)
		if err == nil && d == nil || err != nil && strings.Contains(err.Error(), "\n") {
			t.Fatalf("%v, %q", d, err)
		}
	})
}

// boxes returns truths without masks and keypoints.
func boxes(truths []Truth) (all []Truth) {
	for i := range truths {
		all = append(all, Truth{Box: truths[i].Box, Class: truths[i].Class, Crowd: truths[i].Crowd})
	}
	return all
}

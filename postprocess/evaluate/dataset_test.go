package evaluate

import (
	"image"
	"image/png"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture/scene"
	"github.com/edge-infer/edge-infer/postprocess"
)

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

func writeImage(t *testing.T, dir, name string, width, height int) {
	t.Helper()
	write(t, dir, name, "")
	file, err := os.Create(filepath.Join(dir, name))
	require.NoError(t, err)
	defer file.Close()
	require.NoError(t, png.Encode(file, image.NewGray(image.Rect(0, 0, width, height))))
}

const coco = `{
 "info": {"any": [1, {"thing": 2}]},
 "categories": [{"id": 7, "name": "nut"}, {"id": 2, "name": "bolt"}],
 "images": [
  {"id": 10, "file_name": "a.png", "width": 200, "height": 100},
  {"id": 11, "file_name": "images/b.png", "width": 20, "height": 10}
 ],
 "annotations": [
  {"image_id": 10, "category_id": 7, "bbox": [10, 20, 30, 40.5]},
  {"image_id": 10, "category_id": 2, "bbox": [0, 0, 5, 5], "iscrowd": 1}
 ]
}`

func TestReadCOCO(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "annotations.json", coco)
	writeImage(t, dir, "images/a.png", 200, 100)
	writeImage(t, dir, "images/b.png", 20, 10)
	dataset, err := ReadDataset(dir, "")
	require.NoError(t, err)
	want := []Image{
		{Path: filepath.Join(dir, "images", "a.png"), ID: 10, Width: 200, Height: 100, Truths: []Truth{
			{Box: postprocess.Box{X1: 10, Y1: 20, X2: 40, Y2: 60.5}, Class: 1},
			{Box: postprocess.Box{X1: 0, Y1: 0, X2: 5, Y2: 5}, Class: 0, Crowd: true},
		}},
		{Path: filepath.Join(dir, "images", "b.png"), ID: 11, Width: 20, Height: 10},
	}
	assert.Equal(t, &Dataset{
		Labels: []string{"bolt", "nut"}, Images: want, Categories: []int64{2, 7}, annotations: filepath.Join(dir, "annotations.json"),
	}, dataset)

	assert.EqualError(t, dataset.Relabel([]string{"nut", "washer"}, nil),
		`dataset has objects labelled "bolt", which the model does not have (its labels: nut, washer; --classes selects others)`)
	assert.EqualError(t, dataset.Relabel(nil, nil),
		"the model has no labels to match with those of the dataset (--labels FILE provides them)")
	dataset, err = ReadDataset(dir, "")
	require.NoError(t, err)
	require.NoError(t, dataset.Relabel([]string{"nut", "washer", "Bolt"}, nil))
	assert.Equal(t, 0, dataset.Images[0].Truths[0].Class)
	assert.Equal(t, 2, dataset.Images[0].Truths[1].Class)
	assert.Equal(t, []int64{7, 0, 2}, dataset.Categories)
	require.NoError(t, dataset.Relabel([]string{"nut", "washer", "Bolt"}, []string{"nut"}))
	assert.Len(t, dataset.Images[0].Truths, 1, "objects of labels that do not count are left out")
}

func TestReadYOLO(t *testing.T) {
	dir := t.TempDir()
	writeImage(t, dir, "images/a.png", 200, 100)
	writeImage(t, dir, "images/b.PNG", 20, 10)
	write(t, dir, "images/notes.md", "")
	write(t, dir, "labels/a.txt", "3 0.5 0.5 0.1 0.2\n\n0 0.05 0.1 0.1 0.2\r\n")
	dataset, err := ReadDataset(dir, "")
	require.NoError(t, err)
	require.Len(t, dataset.Images, 2)
	assert.Equal(t, []Truth{
		{Box: postprocess.Box{X1: 90, Y1: 40, X2: 110, Y2: 60}, Class: 3},
		{Box: postprocess.Box{X1: 0, Y1: 0, X2: 20, Y2: 20}, Class: 0},
	}, dataset.Images[0].Truths)
	assert.Empty(t, dataset.Images[1].Truths)
	assert.EqualError(t, dataset.Relabel([]string{"x"}, nil), filepath.Join(dir, "labels", "a.txt")+":1: class 3, the model has 1, from 0 on")
	assert.NoError(t, dataset.Relabel([]string{"a", "b", "c", "d"}, nil))
}

// TestClassBeyondTheNames: a class number that a data.yaml does not name is an error with file and line.
func TestClassBeyondTheNames(t *testing.T) {
	dir := t.TempDir()
	writeImage(t, dir, "images/a.png", 200, 100)
	write(t, dir, "labels/a.txt", "1 0.5 0.5 0.1 0.2\n2 0.5 0.5 0.1 0.2\n")
	for names, want := range map[string]string{
		"[bolt, nut]":                ":2: class 2, the data set names 2, from 0 on (add its name, or correct the line)",
		"{0: bolt, 1: nut}":          ":2: class 2, the data set names 2, from 0 on (add its name, or correct the line)",
		"[bolt, nut, gear]":          "",
		"{0: bolt, 1: nut, 2: gear}": "",
		"[]":                         "",
	} {
		write(t, dir, "data.yaml", "val: images\nnames: "+names)
		dataset, err := ReadDataset(dir, "")
		if want != "" {
			require.EqualError(t, err, "read dataset: "+filepath.Join(dir, "labels", "a.txt")+want)
			continue
		}
		require.NoError(t, err, names)
		require.NoError(t, dataset.Relabel([]string{"bolt", "nut", "gear"}, nil), names)
		require.Equal(t, 2, dataset.Images[0].Truths[1].Class)
	}
}

func TestBadLabelsNameFileAndLine(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"0 0.5 0.5 0.1", "a.txt:1: 4 fields, a line is: class centre-x centre-y width height, or class and the corners of an outline"},
		{"0 0.5 0.5 0.1 0.1\nbolt 0.5 0.5 0.1 0.1", `a.txt:2: class "bolt" is not a number from 0 to 65535`},
		{"-1 0.5 0.5 0.1 0.1", `a.txt:1: class "-1" is not a number from 0 to 65535`},
		{"0 0.5 1.5 0.1 0.1", `a.txt:1: "1.5" is not a share of the image from 0 to 1`},
		{"0 0.5 0.5 0.1 NaN", `a.txt:1: "NaN" is not a share of the image from 0 to 1`},
	} {
		_, err := lineFormat{}.parse("a.txt", []byte(c.text), 100, 100)
		assert.EqualError(t, err, c.want)
	}
	for _, c := range []struct{ text, want string }{
		{"", "a.json:1: the file ends too early"},
		{"[]", `a.json:1: the file must start with '{'`},
		{"{\n\"images\": 3}", `a.json:2: images must start with '['`},
		{"{\n\"images\": [\n{\"id\": \"x\"}]}", "a.json:3: cannot unmarshal string into Go struct field cocoImage.id of type int64"},
		{"{\n\"images\": [\n{\"id\": 1", "a.json:3: the file ends too early"},
		{"{\n\"images\": [\n\n{\"id\": 1}]}", "a.json:4: image 1 needs file_name, width and height"},
		{`{"images": [{"id":1,"file_name":"../x","width":1,"height":1}]}`, `a.json:1: file name "../x" leaves the dataset's directory`},
		{
			"{\"images\": [{\"id\":1,\"file_name\":\"x\",\"width\":1,\"height\":1},\n{\"id\":1,\"file_name\":\"y\",\"width\":1,\"height\":1}]}",
			"a.json:2: image id 1 is used twice",
		},
		{"{\"annotations\": [\n {\"image_id\": 3}]}", "a.json:2: annotation of image 3, which is not in the list of images"},
		{
			"{\"images\": [{\"id\":1,\"file_name\":\"x\",\"width\":1,\"height\":1}],\n\"annotations\": [\n {\"image_id\": 1}]}",
			"a.json:3: category 0 is not in the list of categories",
		},
		{
			`{"images":[{"id":1,"file_name":"x","width":1,"height":1}],"categories":[{"id":0}],"annotations":[{"image_id":1,"bbox":[1,2,3]}]}`,
			"a.json:1: bbox [1 2 3] is not x, y, width, height in pixels",
		},
		{"{\"a\": 1,\n \"b\": tru}", "a.json:2: invalid character '}' in literal true (expecting 'e')"},
	} {
		_, err := parseCOCO("a.json", []byte(c.text))
		assert.EqualError(t, err, c.want)
	}
	dir := t.TempDir()
	_, err := ReadDataset(dir, "")
	require.ErrorIs(t, err, ErrNoLabels)
	assert.EqualError(t, err, "read dataset: "+dir+": no labels found: it needs annotations/instances_*.json or annotations.json (COCO), data.yaml (Ultralytics), "+
		"or images/ and labels/ (YOLO)")
	write(t, dir, "labels/a.txt", "")
	write(t, dir, "images/a.gif", "")
	_, err = ReadDataset(dir, "")
	assert.EqualError(t, err, "read dataset: no labels found: "+filepath.Join(dir,
		"images")+" holds no image (.jpg, .jpeg, .png, .bmp, .webp)")
	write(t, dir, "images/a.png", "this is no image")
	_, err = ReadDataset(dir, "")
	assert.EqualError(t, err, "read dataset: image "+filepath.Join(dir, "images", "a.png")+": image: unknown format")
}

// Labels of other images would make every model look as bad as its reference.
func TestLabelsOfOtherImages(t *testing.T) {
	dir := t.TempDir()
	writeImage(t, dir, "images/a.png", 20, 10)
	writeImage(t, dir, "images/b.png", 20, 10)
	write(t, dir, "labels/c.txt", "0 0.5 0.5 0.1 0.1\n")
	_, err := ReadDataset(dir, "")
	assert.EqualError(t, err, "read dataset: none of the 2 images has a label file, such as "+filepath.Join(dir, "labels", "a.txt")+
		" (are these the labels of other images?)")
	write(t, dir, "annotations.json",
		`{"images":[{"id":1,"file_name":"a.png","width":20,"height":10},{"id":2,"file_name":"d.png","width":20,"height":10}],"annotations":[],"categories":[]}`)
	_, err = ReadDataset(dir, "")
	assert.EqualError(t, err, "read dataset: 1 of the 2 images of "+filepath.Join(dir,
		"annotations.json")+" are missing, such as d.png; searched "+
		filepath.Join(dir, "images")+", "+dir+" (are these the labels of other images?)")
}

func FuzzLabels(f *testing.F) {
	f.Add([]byte(coco))
	f.Add([]byte("3 0.5 0.5 0.1 0.2\n"))
	f.Add([]byte(`{"images": [{"id": 1`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if truths, err := (lineFormat{}).parse("a.txt", text, 640, 480); err == nil {
			for _, truth := range truths {
				if truth.Class < 0 || !(truth.X1 <= truth.X2 && truth.Y1 <= truth.Y2) {
					t.Fatalf("%+v", truth)
				}
			}
		}
		dataset, err := parseCOCO("a.json", text)
		if err != nil {
			return
		}
		for _, img := range dataset.Images {
			for _, truth := range img.Truths {
				if truth.Class >= len(dataset.Labels) || !(truth.X1 <= truth.X2 && truth.Y1 <= truth.Y2) {
					t.Fatalf("%+v", truth)
				}
			}
		}
	})
}

func TestDemoDatasetReadsTheSameFromBothFormats(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, scene.WriteDataset(t.Context(), dir, scene.DatasetOptions{Count: 3, Seed: 5, Width: 320, Height: 320}))
	fromCOCO, err := ReadDataset(dir, "")
	require.NoError(t, err)
	assert.Equal(t, scene.Labels(), fromCOCO.Labels)
	require.NoError(t, os.Remove(filepath.Join(dir, "annotations.json")))
	fromYOLO, err := ReadDataset(dir, "")
	require.NoError(t, err)
	require.Len(t, fromYOLO.Images, 3)
	objects := 0
	for i, want := range fromCOCO.Images {
		got := fromYOLO.Images[i]
		assert.Equal(t, want.Path, got.Path)
		require.Len(t, got.Truths, len(want.Truths))
		for j := range want.Truths {
			assert.Equal(t, want.Truths[j].Class, got.Truths[j].Class)
			assert.InDelta(t, 1, want.Truths[j].IoU(got.Truths[j].Box), 1e-4)
			objects++
		}
	}
	assert.Positive(t, objects)
}
